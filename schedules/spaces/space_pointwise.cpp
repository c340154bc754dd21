#include <algorithm>

#include "frontend/ops/op_table.h"
#include "schedules/spaces/loop_nest.h"
#include "schedules/spaces/spaces.h"

// Space pointwise: kernels without folds, pointwise work and index maps. The innermost loops that every
// operand walks in step (or not at all) are fused, split into vectors and unrolled; the outer ones are shared
// among threads.
//   vectors  vectors per step of the inner loop
//   tasks    parallel tasks per thread; 0: one thread

namespace sylvite {
namespace {

bool has_updates(const Kernel& kernel) {
  return std::any_of(kernel.body.nodes().begin(), kernel.body.nodes().end(),
                     [](const Node& node) { return !update_stages(node.op).empty(); });
}

struct Numbers {
  std::int64_t vectors = 1;
  std::int64_t tasks = 0;
};

struct Pointwise {
  const Kernel& kernel;
  const Machine& machine;
  KernelFacts facts;
  Numbers heuristic;

  [[nodiscard]] std::vector<Range<Numbers>> ranges() const;
  [[nodiscard]] Candidate at(const Numbers& point) const;
  [[nodiscard]] double cost(const Numbers& point) const;
};

std::vector<Range<Numbers>> Pointwise::ranges() const {
  std::vector<std::int64_t> tasks = {0};
  if (task_count(facts, machine, 1) > 0) tasks = {1, 2, 4, 8, 0};
  return {{"vectors", &Numbers::vectors, {2, 4, 1, 8}}, {"tasks", &Numbers::tasks, tasks}};
}

Numbers first_point(const Kernel& kernel, const Machine& machine, const KernelFacts& facts) {
  // Little arithmetic: unroll against loop overhead. Much: the compiler needs the registers.
  const double elements = static_cast<double>(kernel.body.type(kernel.body.outputs.front()).element_count());
  const bool is_light = facts.work <= 6 * elements;
  return {.vectors = is_light ? 4 : 2, .tasks = task_count(facts, machine, 1) > 0 ? 1 : 0};
}

Candidate Pointwise::at(const Numbers& point) const {
  ScheduleWriter writer;
  LoopNest nest(writer, facts.output, facts.loops);
  if (facts.extents.empty()) return {Form{}, writer.take()};
  nest.fuse_inner(common_run(kernel, facts.extents));
  nest.drop_unit_loops();
  // Short rows: whole vectors across rows cost an index computation, half-empty ones more.
  while (nest.loops().size() > 1 && !nest.loops()[0].run.is_open &&
         nest.loops()[0].run.extent * 2 <= facts.lanes)
    nest.fuse_inner(2);
  const std::int64_t step = nest.vectorize_inner(facts.lanes, point.vectors);
  const bool row_is_one_step = nest.loops()[0].is_one();
  if (row_is_one_step && nest.loops().size() > 1 && step < point.vectors * facts.lanes)
    nest.tile(1, point.vectors * facts.lanes / step);
  if (point.tasks > 0) nest.parallelize(task_count(facts, machine, point.tasks), 0);
  return {Form{}, writer.take()};
}

double Pointwise::cost(const Numbers& point) const {
  const double overhead = 1 + 0.1 / static_cast<double>(point.vectors);
  return vector_seconds(facts.work * overhead, machine, point.tasks > 0 ? machine.threads : 1);
}

Binding bind(const Kernel& kernel, const Machine& machine) {
  if (has_updates(kernel)) return {"the kernel folds"};
  if (kernel.body.outputs.size() != 1) return {"the kernel has several outputs"};
  const KernelFacts facts = facts_of(kernel, machine);
  return bind_space(Pointwise{kernel, machine, facts, first_point(kernel, machine, facts)});
}

}  // namespace

const Space pointwise_space = {"pointwise", bind, {}, Space::Open::all};

}  // namespace sylvite
