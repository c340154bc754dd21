#include <algorithm>

#include "frontend/ops/op_table.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/algorithms/halide_types.h"
#include "schedules/spaces/loop_nest.h"
#include "schedules/spaces/spaces.h"

// Space whole_stages: any kernel with folds. Every stage with updates (and vN_exp, vN_steps) is computed
// whole before its readers, vectorised along d0 and parallel along its outermost dim where the update writes
// that dim in order. For scans, orderings, scatters and whatever the special spaces refuse. A kernel that ends in a scatter, or in
// a scan of columns, folds its result where it lies, by form stored_folds.
//   tasks  0: one thread, else parallel

namespace sylvite {
namespace {

/// The first update: its loops over d0 are vectors, inside those that fold, where it writes that dim in order.
void schedule_update(ScheduleWriter& writer, const std::string& name, const Halide::Func& func, int lanes) {
  if (func.args().empty() || !is_pure_dim(func, 0)) return;
  const std::string inner = func.args().front().name();
  std::string order = inner;
  for (const Halide::RVar& variable : func.rvars(0)) order += ", " + variable.name();
  writer.add("{}.update(0).reorder({}).vectorize({}, {}, TailStrategy::GuardWithIf);", name, order, inner,
             lanes);
}

void schedule_stage(ScheduleWriter& writer, const std::string& name, const Halide::Func& func, int lanes,
                    bool is_parallel) {
  const std::size_t rank = func.args().size();
  if (rank == 0) return;
  const std::string inner = func.args().front().name();
  const std::string outer = func.args().back().name();
  if (func.is_extern()) {
    if (is_parallel && rank > 1) writer.add("{}.parallel({});", name, outer);
    return;
  }
  writer.add("{}.vectorize({}, {}, TailStrategy::GuardWithIf);", name, inner, lanes);
  if (is_parallel && rank > 1) writer.add("{}.parallel({});", name, outer);
  if (!func.has_update_definition()) return;
  schedule_update(writer, name, func, lanes);
  if (is_parallel && rank > 1 && is_pure_dim(func, rank - 1))
    writer.add("{}.update(0).parallel({});", name, outer);
}

/// By form stored_folds, where a copy of the fold would be all that is left to do.
bool stores_fold(const Kernel& kernel) {
  const Node& last = kernel.body.nodes().back();
  if (kernel.body.outputs != std::vector<ValueId>{last.outputs.front()}) return false;
  const TensorType& type = kernel.body.type(last.outputs.front());
  if (is_converted_to_store(type.dtype)) return false;
  if (!has_trait(last.op, OpTrait::scan)) return has_trait(last.op, OpTrait::scatter);
  return type.layout == Layout{} && last.attributes.integer("axis") != type.rank() - 1;
}

struct StageNumbers {
  std::int64_t tasks = 0;
};

struct WholeStages {
  const Kernel& kernel;
  const Machine& machine;
  KernelFacts facts;
  StageNumbers heuristic;

  [[nodiscard]] std::vector<Range<StageNumbers>> ranges() const {
    return {{"tasks", &StageNumbers::tasks,
             heuristic.tasks > 0 ? std::vector<std::int64_t>{1, 0} : std::vector<std::int64_t>{0}}};
  }
  [[nodiscard]] Candidate at(const StageNumbers& point) const;
  [[nodiscard]] double cost(const StageNumbers& point) const {
    constexpr double memory_round_trips = 4;
    return vector_seconds(facts.work * memory_round_trips, machine, point.tasks > 0 ? machine.threads : 1);
  }
};

Candidate WholeStages::at(const StageNumbers& point) const {
  const bool is_in_place = writes_in_place(kernel.body.nodes().back().op);
  const Form form = !is_in_place && stores_fold(kernel) ? Form{"stored_folds", {}} : Form{};
  const Algorithm algorithm = build_algorithm(kernel, form);
  const std::int64_t tasks = point.tasks > 0 ? task_count(facts, machine, point.tasks) : 0;
  ScheduleWriter writer;
  if (is_in_place) {  // a few rows, in one thread
    const std::string name = output_stage(kernel, kernel.body.outputs.front());
    schedule_update(writer, name, algorithm.stages.at(name), facts.lanes);
    return {Form{}, writer.take()};
  }
  for (const auto& [name, func] : algorithm.stages) {
    const bool is_costly = name.ends_with("_exp") || name.ends_with("_steps");
    if (!func.has_update_definition() && !func.is_extern() && !is_costly) continue;
    if (name != output_stage(kernel, kernel.body.outputs.front())) writer.add("{}.compute_root();", name);
    schedule_stage(writer, name, func, facts.lanes, tasks > 0);
  }
  for (const ValueId id : kernel.body.outputs) {
    if (algorithm.stages.at(output_stage(kernel, id)).has_update_definition())
      continue;  // a stage of its own
    LoopNest nest(writer, output_stage(kernel, id), run_extents(kernel, id));
    nest.drop_unit_loops();
    nest.vectorize_inner(facts.lanes, 1);
    nest.parallelize(tasks, 0);
  }
  return {form, writer.take()};
}

Binding bind_whole_stages(const Kernel& kernel, const Machine& machine) {
  const bool folds = std::ranges::any_of(kernel.body.nodes(),
                                         [](const Node& node) { return !update_stages(node.op).empty(); });
  if (!folds) return {"the kernel does not fold"};
  const KernelFacts facts = facts_of(kernel, machine);
  return bind_space(
      WholeStages{kernel, machine, facts, {.tasks = task_count(facts, machine, 1) > 0 ? 1 : 0}});
}

}  // namespace

const Space whole_stages_space = {"whole_stages", bind_whole_stages, {}, Space::Open::all};

}  // namespace sylvite
