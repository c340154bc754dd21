#include <algorithm>

#include "base/rounding.h"
#include "frontend/ops/op_table.h"
#include "lowering/plan/run_extents.h"
#include "schedules/spaces/fold_schedule.h"
#include "schedules/spaces/spaces.h"

// Space contraction: any matmul or convolution in its generic form, for kernels that no template takes. A
// tile of `vectors` vectors along d0 times `rows` of another loop is kept in registers while the fold runs.

namespace sylvite {
namespace {

std::string refuses_contraction(const Kernel& kernel) {
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

int contraction_fold_rank(const Kernel& kernel, const Node& anchor) {
  if (anchor.op == Op::matmul) return 1;
  const int spatial = kernel.body.type(anchor.outputs.front()).rank() - 2;
  const bool blocked = anchor.attributes.integer("groups") == 1 &&
                       kernel.body.type(anchor.inputs.front()).layout.channel_block > 0;
  return spatial + 1 + (blocked ? 1 : 0);
}

/// Tiles of output channels that stay within a group of a dense grouped convolution, or hold a few whole small
/// groups, largest first; empty where others do as well. Of a tile that begins anywhere, Halide cannot tell
/// which rows share their input: each then reads its own, which took two to ten times as long.
std::vector<std::int64_t> tiles_of_group(const Kernel& kernel, const Node& anchor, std::int64_t most) {
  constexpr std::int64_t most_of_several = 8;  // each group keeps vectors of its own input in registers
  const TensorType& type = kernel.body.type(anchor.outputs.front());
  if (anchor.op != Op::conv || type.layout.channel_block > 0) return {};
  const std::int64_t groups = anchor.attributes.integer("groups");
  const std::int64_t all = type.shape[1].known();
  const std::int64_t channels = all / groups;
  if (groups == 1 || channels < 2) return {};
  std::vector<std::int64_t> tiles;
  for (std::int64_t rows = most; rows > 1; --rows) {
    const bool holds_groups = rows <= most_of_several && rows % channels == 0 && all % rows == 0;
    if (channels % rows == 0 || holds_groups) tiles.push_back(rows);
  }
  return tiles;
}

/// Rows of a tile whose sums, vectors of the source and one factor fit the registers.
std::int64_t most_rows(const Machine& machine, std::int64_t vectors) {
  return (machine.vector_registers - vectors - 2) / vectors;
}

struct ContractionNumbers {
  std::int64_t vectors = 1;
  std::int64_t rows = 1;
  std::int64_t tasks = 0;
};

struct Contraction {
  const Kernel& kernel;
  const Machine& machine;
  KernelFacts facts;
  std::vector<std::int64_t> group_tiles;
  ContractionNumbers heuristic;

  [[nodiscard]] std::vector<Range<ContractionNumbers>> ranges() const;
  [[nodiscard]] Candidate at(const ContractionNumbers& point) const;
  [[nodiscard]] double cost(const ContractionNumbers& point) const;
  [[nodiscard]] bool is_masked() const;
  [[nodiscard]] double unfilled() const;
};

std::vector<Range<ContractionNumbers>> Contraction::ranges() const {
  std::vector<std::int64_t> tasks = {0};
  if (task_count(facts, machine, 1) > 0) tasks = {4, 1, 0};
  return {{"vectors", &ContractionNumbers::vectors, {2, 1, 4}},
          {"rows", &ContractionNumbers::rows,
           group_tiles.empty() ? std::vector<std::int64_t>{6, 4, 8, 12, 1} : group_tiles},
          {"tasks", &ContractionNumbers::tasks, tasks}};
}

Candidate Contraction::at(const ContractionNumbers& point) const {
  const std::size_t tiled = tiled_loop(kernel, *facts.anchor);
  ScheduleWriter writer;
  LoopNest nest(writer, facts.output, facts.loops);
  const std::int64_t step =
      is_masked() ? nest.mask_inner(facts.lanes) : nest.vectorize_inner(facts.lanes, point.vectors);
  std::vector<std::string> unrolled;
  const std::string stage = facts.anchor_value + "_fold";
  const std::int64_t rows = nest.tile(tiled, point.rows);
  if (rows > 1) {
    unrolled.push_back("d" + std::to_string(tiled));
    writer.add("{}.bound_extent(d{}, {});", stage, tiled, rows);
  }
  if (point.tasks > 0) nest.parallelize(task_count(facts, machine, point.tasks), 0);
  fold_columns(writer, stage, step, facts.lanes, unrolled, contraction_fold_rank(kernel, *facts.anchor),
               false, {facts.output, nest.loops()[0].name});
  return {Form{}, writer.take()};
}

double Contraction::cost(const ContractionNumbers& point) const {
  const double tile = static_cast<double>(point.vectors * point.rows);
  const double spill = tile > machine.vector_registers - 4 ? 4 : 1;
  const double loads = 1 + 2 / tile;
  return vector_seconds(facts.work * spill * loads * unfilled(), machine,
                        point.tasks > 0 ? machine.threads : 1);
}

/// Do vectors have all lanes, though lines of pixels may be shorter? Windows that may leave a line are masked at its end.
bool Contraction::is_masked() const {
  if (facts.anchor->op != Op::conv || facts.loops.empty()) return false;
  const std::size_t last = facts.anchor->attributes.integers("strides").size() - 1;
  return has_pads(kernel, *facts.anchor, last) && facts.loops.front().is_open &&
         facts.loops.front().least < facts.lanes;
}

/// Lanes that vectors could have, over those that work on elements.
double Contraction::unfilled() const {
  if (facts.loops.empty() || facts.extents.front() == 0) return facts.lanes;
  const std::int64_t least = std::max<std::int64_t>(facts.loops.front().least, 1);
  const std::int64_t vector = is_masked() ? facts.lanes : std::min<std::int64_t>(facts.lanes, least);
  const std::int64_t extent = facts.extents.front();
  return static_cast<double>(ceil_div(extent, vector) * facts.lanes) / static_cast<double>(extent);
}

Binding bind_contraction(const Kernel& kernel, const Machine& machine) {
  if (std::string refusal = refuses_contraction(kernel); !refusal.empty()) return {refusal};
  const KernelFacts facts = facts_of(kernel, machine);
  const bool is_narrow = facts.extents[0] < std::int64_t{2} * facts.lanes;
  ContractionNumbers first{.vectors = is_narrow ? 1 : 2,
                           .rows = is_narrow ? 12 : 6,
                           .tasks = task_count(facts, machine, 1) > 0 ? 4 : 0};
  const std::vector<std::int64_t> tiles =
      tiles_of_group(kernel, *facts.anchor, most_rows(machine, first.vectors));
  if (!tiles.empty()) first.rows = tiles.front();
  return bind_space(Contraction{kernel, machine, facts, tiles, first});
}

}  // namespace

const Space contraction_space = {"contraction", bind_contraction, {}, Space::Open::all};

}  // namespace sylvite
