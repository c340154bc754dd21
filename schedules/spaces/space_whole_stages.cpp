#include <algorithm>

#include "lowering/algorithms/algorithm.h"
#include "schedules/spaces/loop_nest.h"

// Space whole_stages: any kernel with folds. Every stage with updates (and vN_exp, vN_steps) is computed
// whole before its readers, vectorised along d0 and parallel along its outermost dim where the update writes
// that dim in order. For scans, orderings, scatters and whatever the special spaces refuse.
//   tasks  0: one thread, else parallel

namespace sylvite {
namespace {

void schedule_stage(ScheduleWriter& writer, const std::string& name, const Halide::Func& func, int lanes,
                    bool is_parallel) {
  writer.add("{}.compute_root();", name);
  const std::size_t rank = func.args().size();
  if (rank == 0) return;
  const std::string inner = func.args().front().name();
  const std::string outer = func.args().back().name();
  writer.add("{}.vectorize({}, {}, TailStrategy::GuardWithIf);", name, inner, lanes);
  if (is_parallel && rank > 1) writer.add("{}.parallel({});", name, outer);
  if (!func.has_update_definition()) return;
  if (is_pure_dim(func, 0)) {
    std::string order = inner;
    for (const Halide::RVar& variable : func.rvars(0)) order += ", " + variable.name();
    writer.add("{}.update(0).reorder({}).vectorize({}, {}, TailStrategy::GuardWithIf);", name, order, inner,
               lanes);
  }
  if (is_parallel && rank > 1 && is_pure_dim(func, rank - 1))
    writer.add("{}.update(0).parallel({});", name, outer);
}

std::string refuses(const Kernel& kernel, const Machine& /*machine*/) {
  const std::vector<Node>& nodes = kernel.body.nodes();
  const bool folds = std::any_of(nodes.begin(), nodes.end(),
                                 [](const Node& node) { return !update_stages(node.op).empty(); });
  return folds ? "" : "the kernel does not fold";
}

std::vector<Parameter> parameters(const Kernel& kernel, const Machine& machine) {
  const bool is_large = task_count(facts_of(kernel, machine), machine, 1) > 0;
  return {{"tasks", is_large ? std::vector<std::int64_t>{1, 0} : std::vector<std::int64_t>{0}}};
}

Point heuristic(const Kernel& kernel, const Machine& machine) {
  return {{"tasks", task_count(facts_of(kernel, machine), machine, 1) > 0 ? 1 : 0}};
}

Candidate at(const Kernel& kernel, const Machine& machine, const Point& point) {
  const KernelFacts facts = facts_of(kernel, machine);
  const Algorithm algorithm = build_algorithm(kernel, Form{});
  const std::int64_t tasks = point.at("tasks") > 0 ? task_count(facts, machine, point.at("tasks")) : 0;
  ScheduleWriter writer;
  for (const auto& [name, func] : algorithm.stages) {
    const bool is_costly = name.ends_with("_exp") || name.ends_with("_steps");
    if (func.has_update_definition() || is_costly) schedule_stage(writer, name, func, facts.lanes, tasks > 0);
  }
  for (const ValueId id : kernel.body.outputs) {
    LoopNest nest(writer, output_stage(kernel, id), loop_extents(kernel.body.type(id)));
    nest.drop_unit_loops();
    nest.vectorize_inner(facts.lanes, 1);
    nest.parallelize(tasks, 0);
  }
  return {Form{}, writer.take()};
}

double cost(const Kernel& kernel, const Machine& machine, const Point& point) {
  constexpr double memory_round_trips = 4;
  const double threads = point.at("tasks") > 0 ? machine.threads : 1;
  return vector_seconds(facts_of(kernel, machine).work * memory_round_trips, machine, threads);
}

}  // namespace

const Space whole_stages_space = {"whole_stages", refuses, parameters, heuristic, at, cost};

}  // namespace sylvite
