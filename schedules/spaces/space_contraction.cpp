#include <algorithm>

#include "frontend/ops/op_table.h"
#include "schedules/spaces/fold_schedule.h"
#include "schedules/spaces/spaces.h"

// Space contraction: any matmul or convolution in its generic form, for kernels that no template takes. A
// tile of `vectors` vectors along d0 times `rows` of another loop is kept in registers while the fold runs.

namespace sylvite {
namespace {

std::string refuses(const Kernel& kernel) {
  if (kernel.anchor == no_node) return "the kernel has no anchor";
  const Node& anchor = kernel.body.node(kernel.anchor);
  if (anchor.op != Op::matmul && anchor.op != Op::conv) return "the anchor is no matmul or convolution";
  if (kernel.body.outputs.size() != 1) return "the kernel has several outputs";
  for (const Node& node : kernel.body.nodes())
    if (&node != &anchor && !update_stages(node.op).empty()) return "the kernel folds twice";
  const TensorType& type = kernel.body.type(anchor.outputs.front());
  if (loop_extents(type) != loop_extents(kernel.body.type(kernel.body.outputs.front())))
    return "the output has other loops than the product";
  return "";
}

/// The loop whose iterations share what the vectors read: rows of a matmul, channels of a dense convolution,
/// pixels of a blocked one.
std::size_t tiled_loop(const Kernel& kernel, const Node& anchor) {
  const TensorType& type = kernel.body.type(anchor.outputs.front());
  if (anchor.op == Op::matmul || type.layout.channel_block > 0) return 1;
  return static_cast<std::size_t>(type.rank() - 2);
}

int fold_rank(const Kernel& kernel, const Node& anchor) {
  if (anchor.op == Op::matmul) return 1;
  const int spatial = kernel.body.type(anchor.outputs.front()).rank() - 2;
  const bool blocked = anchor.attributes.integer("groups") == 1 &&
                       kernel.body.type(anchor.inputs.front()).layout.channel_block > 0;
  return spatial + 1 + (blocked ? 1 : 0);
}

struct Numbers {
  std::int64_t vectors = 1;
  std::int64_t rows = 1;
  std::int64_t tasks = 0;
};

struct Contraction {
  const Kernel& kernel;
  const Machine& machine;
  KernelFacts facts;
  Numbers heuristic;

  [[nodiscard]] std::vector<Range<Numbers>> ranges() const;
  [[nodiscard]] Candidate at(const Numbers& point) const;
  [[nodiscard]] double cost(const Numbers& point) const;
};

std::vector<Range<Numbers>> Contraction::ranges() const {
  std::vector<std::int64_t> tasks = {0};
  if (task_count(facts, machine, 1) > 0) tasks = {4, 1, 0};
  return {{"vectors", &Numbers::vectors, {2, 1, 4}},
          {"rows", &Numbers::rows, {6, 4, 8, 12, 1}},
          {"tasks", &Numbers::tasks, tasks}};
}

Candidate Contraction::at(const Numbers& point) const {
  const std::size_t tiled = tiled_loop(kernel, *facts.anchor);
  ScheduleWriter writer;
  LoopNest nest(writer, facts.output, facts.loops);
  const std::int64_t step = nest.vectorize_inner(facts.lanes, point.vectors);
  std::vector<std::string> unrolled;
  const std::string stage = facts.anchor_value + "_fold";
  const std::int64_t rows = nest.tile(tiled, point.rows);
  if (rows > 1) {
    unrolled.push_back("d" + std::to_string(tiled));
    writer.add("{}.bound_extent(d{}, {});", stage, tiled, rows);
  }
  if (point.tasks > 0) nest.parallelize(task_count(facts, machine, point.tasks), 0);
  fold_columns(writer, stage, step, facts.lanes, unrolled, fold_rank(kernel, *facts.anchor), false,
               {facts.output, nest.loops()[0].name});
  return {Form{}, writer.take()};
}

double Contraction::cost(const Numbers& point) const {
  const double tile = static_cast<double>(point.vectors * point.rows);
  const double spill = tile > machine.vector_registers - 4 ? 4 : 1;
  const double loads = 1 + 2 / tile;
  return vector_seconds(facts.work * spill * loads, machine, point.tasks > 0 ? machine.threads : 1);
}

Binding bind(const Kernel& kernel, const Machine& machine) {
  if (std::string refusal = refuses(kernel); !refusal.empty()) return {refusal};
  const KernelFacts facts = facts_of(kernel, machine);
  const bool is_narrow = facts.extents[0] < std::int64_t{2} * facts.lanes;
  return bind_space(Contraction{kernel,
                                machine,
                                facts,
                                {.vectors = is_narrow ? 1 : 2,
                                 .rows = is_narrow ? 12 : 6,
                                 .tasks = task_count(facts, machine, 1) > 0 ? 4 : 0}});
}

}  // namespace

const Space contraction_space = {"contraction", bind, {}, Space::Open::all};

}  // namespace sylvite
