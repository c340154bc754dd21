#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/ops/op_table.h"
#include "schedules/spaces/loop_nest.h"
#include "schedules/spaces/spaces.h"

// Space pointwise: kernels without folds, pointwise work and index maps. The innermost loops that every
// operand walks in step (or not at all) are fused, split into vectors and unrolled; the outer ones are shared
// among threads.
//   vectors  vectors per step of the inner loop
//   tasks    parallel tasks per thread; 0: one thread
//   columns  where a large operand is transposed: steps along the loop on which its neighbours are, taken together, so that
//            each line of it that comes serves them all. Vectors are short there: each element is a load of its own, of a line that
//            the next step wants again, and LLVM takes long for many. 1: loops as for others

namespace sylvite {
namespace {

/// The loop, counted from the innermost, on which the neighbours of a large transposed operand are; 0: there is none.
std::size_t transposed_loop(const Kernel& kernel, const Machine& machine) {
  const Graph& body = kernel.body;
  const TensorType& out = body.type(body.outputs.front());
  for (const Node& node : body.nodes()) {
    if (node.op != Op::transpose) continue;
    const TensorType& type = body.type(node.outputs.front());
    const std::vector<std::int64_t>& perm = node.attributes.integers("perm");
    // Channels that lie in blocks lie together in both.
    const Node* source = producer_if(body, node.inputs[0], Op::to_layout);
    if (source != nullptr && body.type(source->inputs[0]).layout.channel_block > 0) continue;
    const bool is_blocked = type.layout.channel_block > 0 || out.layout.channel_block > 0;
    if (is_blocked || perm.size() != out.shape.size() || type.byte_size() <= machine.l1_bytes) continue;
    const auto neighbours = std::ranges::find(perm, static_cast<std::int64_t>(perm.size()) - 1);
    if (neighbours + 1 != perm.end()) return static_cast<std::size_t>(perm.end() - neighbours) - 1;
  }
  return 0;
}

/// The loop of channels, where they lie in blocks in what is read and the innermost loops of the output are shorter than
/// a vector: filters with small windows. 0: there is none.
std::size_t blocked_loop(const Kernel& kernel, const KernelFacts& facts, std::size_t run) {
  const Graph& body = kernel.body;
  if (body.nodes().empty() || facts.extents.size() < 3) return 0;
  std::int64_t extent = 1;
  for (std::size_t i = 0; i < run; ++i) extent *= facts.extents[i];
  if (extent >= facts.lanes) return 0;
  const Node& first = body.nodes().front();
  const bool leaves_blocks =
      first.op == Op::to_layout && body.type(first.outputs[0]).layout.channel_block == 0;
  if (!leaves_blocks || body.type(first.inputs[0]).layout.channel_block % facts.lanes != 0) return 0;
  const auto rank = static_cast<std::size_t>(body.type(first.outputs[0]).rank());
  if (body.nodes().size() == 1) return rank - 2;
  const Node& second = body.nodes()[1];
  if (body.nodes().size() != 2 || second.op != Op::transpose) return 0;
  const std::vector<std::int64_t>& perm = second.attributes.integers("perm");
  return rank - 1 - static_cast<std::size_t>(std::ranges::find(perm, 1) - perm.begin());
}

/// Little arithmetic: unrolled against loop overhead. Much: the compiler needs the registers.
bool is_light(const KernelFacts& facts, const TensorType& out) {
  return facts.work <= 6 * static_cast<double>(out.element_count());
}

/// Is a row of parts that follow each other along it short enough to be unrolled? There each vector knows its part, where else it
/// asks for all.
bool is_row_of_parts(const Kernel& kernel, const KernelFacts& facts) {
  constexpr std::int64_t most_vectors = 64;
  const TensorType& out = kernel.body.type(kernel.body.outputs.front());
  const bool joins = std::ranges::any_of(kernel.body.nodes(), [&](const Node& node) {
    return node.op == Op::concat && node.attributes.integer("axis") == out.rank() - 1 &&
           kernel.body.type(node.outputs.front()).shape == out.shape;
  });
  if (!joins || out.layout.channel_block > 0 || facts.loops[0].is_open) return false;
  const std::int64_t row = facts.extents[0];
  return row >= facts.lanes && row <= most_vectors * facts.lanes && is_light(facts, out);
}

/// Are lines filled with what lies inside them? Steps that touch an end gather their elements, so short ones are to touch it.
bool is_filled_from_inside(const Kernel& kernel) {
  return std::ranges::any_of(kernel.body.nodes(), [&](const Node& node) {
    if (node.op != Op::pad) return false;
    const std::string& mode = node.attributes.string("mode");
    return (mode == "reflect" || mode == "wrap") &&
           (node.attributes.extents("low").back() != 0 || node.attributes.extents("high").back() != 0);
  });
}

/// Elements of a vector whose elements are loads of their own: few, but a short row whole.
std::int64_t gathered_lanes(const KernelFacts& facts) {
  constexpr std::int64_t lanes = 8;
  const bool is_short = !facts.loops[0].is_open && facts.extents[0] < 2 * lanes;
  return is_short ? facts.lanes : std::min<std::int64_t>(facts.lanes, lanes);
}

struct PointwiseNumbers {
  std::int64_t vectors = 1;
  std::int64_t tasks = 0;
  std::int64_t columns = 1;
};

struct Pointwise {
  const Kernel& kernel;
  const Machine& machine;
  KernelFacts facts;
  std::size_t transposed;  ///< see transposed_loop
  std::size_t blocked;     ///< see blocked_loop
  PointwiseNumbers heuristic;

  [[nodiscard]] Form form() const { return kernel.body.outputs.size() > 1 ? Form{"together", {}} : Form{}; }
  [[nodiscard]] std::vector<Range<PointwiseNumbers>> ranges() const;
  [[nodiscard]] Candidate at(const PointwiseNumbers& point) const;
  [[nodiscard]] double cost(const PointwiseNumbers& point) const;
};

std::vector<Range<PointwiseNumbers>> Pointwise::ranges() const {
  std::vector<std::int64_t> tasks = {0};
  if (task_count(facts, machine, 1) > 0) tasks = {1, 2, 4, 8, 0};
  if (transposed > 0) {
    return {{"vectors", &PointwiseNumbers::vectors, {1, 2, 4}},
            {"tasks", &PointwiseNumbers::tasks, tasks},
            {"columns", &PointwiseNumbers::columns, {16, 8, 32, 1}}};
  }
  if (is_row_of_parts(kernel, facts)) return {{"tasks", &PointwiseNumbers::tasks, tasks}};
  return {{"vectors", &PointwiseNumbers::vectors, {2, 4, 1, 8}}, {"tasks", &PointwiseNumbers::tasks, tasks}};
}

PointwiseNumbers first_pointwise_point(const Kernel& kernel, const Machine& machine, const KernelFacts& facts,
                                       std::size_t transposed) {
  const std::int64_t first_tasks = task_count(facts, machine, 1) > 0 ? 1 : 0;
  if (transposed > 0) return {.vectors = 1, .tasks = first_tasks, .columns = 16};
  const bool light = is_light(facts, kernel.body.type(kernel.body.outputs.front()));
  return {.vectors = is_filled_from_inside(kernel) ? 1 : light ? 4 : 2, .tasks = first_tasks};
}

Candidate Pointwise::at(const PointwiseNumbers& point) const {
  ScheduleWriter writer;
  LoopNest nest(writer, facts.output, facts.loops);
  if (facts.extents.empty()) return {form(), writer.take()};
  if (blocked > 0) {  // vectors are read whole, and their elements written apart
    nest.move_inside(blocked);
    (void)nest.vectorize_inner(facts.lanes, 1);
    nest.move_outside();
    if (point.tasks > 0) nest.parallelize(task_count(facts, machine, point.tasks), 0);
    return {form(), writer.take()};
  }
  if (point.columns > 1) {
    (void)nest.vectorize_inner(gathered_lanes(facts), point.vectors);
    (void)nest.tile(transposed, point.columns);
    if (point.tasks > 0) nest.parallelize(task_count(facts, machine, point.tasks), 0);
    return {form(), writer.take()};
  }
  if (is_row_of_parts(kernel, facts)) {
    nest.unroll_inner(facts.lanes);
    if (point.tasks > 0) nest.parallelize(task_count(facts, machine, point.tasks), 0);
    return {form(), writer.take()};
  }
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
  return {form(), writer.take()};
}

double Pointwise::cost(const PointwiseNumbers& point) const {
  const double overhead = 1 + 0.1 / static_cast<double>(point.vectors);
  const double misses = transposed > 0 && point.columns == 1 ? 4 : 1;
  return vector_seconds(facts.work * overhead * misses, machine, point.tasks > 0 ? machine.threads : 1);
}

Binding bind_pointwise(const Kernel& kernel, const Machine& machine) {
  if (std::string why = refuse_elements(kernel); !why.empty()) return {why};
  const KernelFacts facts = element_facts(kernel, machine);
  const std::size_t transposed = transposed_loop(kernel, machine);
  const std::size_t blocked = blocked_loop(kernel, facts, common_run(kernel, facts.extents));
  return bind_space(Pointwise{kernel, machine, facts, transposed, blocked,
                              first_pointwise_point(kernel, machine, facts, transposed)});
}

}  // namespace

const Space pointwise_space = {"pointwise", bind_pointwise, {}, Space::Open::all};

}  // namespace sylvite
