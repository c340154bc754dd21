#include <algorithm>

#include "base/rounding.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "schedules/spaces/fold_schedule.h"
#include "schedules/spaces/spaces.h"

// Spaces for softmax, log_softmax, layer_norm and rms_norm.
//   normalization_rows     over the innermost dims of a dense value: one row at a time, folds in registers; of softmax over rows
//                          that fill no vector, a vector of rows at a time; of log_softmax over short rows, the logarithms of a
//                          vector of rows at once
//   normalization_columns  softmax over an outer dim: one vector of columns at a time
// Parameters: `vectors` per step, parallel `tasks` per thread (0: one thread), `keep` the anchor's input of a
// row in memory instead of computing it again in each pass, `rows` whose passes go side by side (1: a row after the other).

namespace sylvite {
namespace {

bool is_softmax(const Node& node) {
  return node.op == Op::softmax || node.op == Op::log_softmax;
}

/// Folded loops d0.. of a normalisation over the innermost dims.
std::size_t row_rank(const Kernel& kernel, const Node& anchor) {
  if (is_softmax(anchor)) return 1;
  return static_cast<std::size_t>(kernel.body.type(anchor.outputs.front()).rank() -
                                  anchor.attributes.integer("axis"));
}

std::string refuses_any(const Kernel& kernel) {
  if (kernel.kind != KernelClass::normalization) return "the anchor is no normalisation";
  const Node& anchor = kernel.body.node(kernel.anchor);
  if (anchor.op == Op::batch_norm) return "batch_norm does not fold";
  if (anchor.attributes.has("groups")) return "groups are normalised";
  if (kernel.body.outputs.size() != 1) return "the kernel has several outputs";
  for (const Node& node : kernel.body.nodes())
    if (&node != &anchor && !update_stages(node.op).empty()) return "the kernel folds twice";
  const ValueId out = kernel.body.outputs.front();
  if (loop_extents(kernel.body.type(out)) != loop_extents(kernel.body.type(anchor.outputs.front())))
    return "the output has other loops than the normalisation";
  return "";
}

std::string refuses_normalized_rows(const Kernel& kernel) {
  if (std::string reason = refuses_any(kernel); !reason.empty()) return reason;
  const Node& anchor = kernel.body.node(kernel.anchor);
  const TensorType& type = kernel.body.type(anchor.outputs.front());
  if (type.layout.channel_block > 0) return "the value is stored in blocks";
  if (is_softmax(anchor) && anchor.attributes.integer("axis") != type.rank() - 1)
    return "the axis is not the innermost";
  return "";
}

bool has_prologue(const Kernel& kernel, const Node& anchor) {
  return kernel.body.value(anchor.inputs.front()).producer != no_node;
}

/// Do several rows fill a vector where one does not?
bool has_short_rows(const KernelFacts& facts) {
  if (!is_softmax(*facts.anchor) || facts.loops.size() < 2 || facts.loops[0].is_open) return false;
  return facts.extents[0] <= facts.lanes && facts.loops[1].least >= facts.lanes;
}

/// A logarithm of one number takes as long as that of a vector, which shows beside short rows.
bool has_common_logarithms(const KernelFacts& facts) {
  if (facts.anchor->op != Op::log_softmax || facts.loops.size() < 2) return false;
  const RunExtent& rows = facts.loops[1];
  return !facts.loops[0].is_open && facts.extents[0] <= 8 * facts.lanes && !rows.is_open &&
         rows.extent >= facts.lanes;
}

struct NormalizationNumbers {
  std::int64_t vectors = 1;
  std::int64_t tasks = 0;
  std::int64_t keep = 0;
  std::int64_t rows = 1;
};

/// A kernel of either space, as it was read.
struct Normalization {
  const Kernel& kernel;
  const Machine& machine;
  KernelFacts facts;

  [[nodiscard]] std::vector<Range<NormalizationNumbers>> ranges() const;
  [[nodiscard]] double cost(const NormalizationNumbers& point) const;
  [[nodiscard]] std::int64_t usual_vectors() const;
  [[nodiscard]] std::int64_t usual_rows() const;

  NormalizationNumbers heuristic = {.vectors = usual_vectors(),
                                    .tasks = task_count(facts, machine, 1) > 0 ? 1 : 0,
                                    .keep = has_prologue(kernel, *facts.anchor) ? 1 : 0,
                                    .rows = usual_rows()};
};

std::vector<Range<NormalizationNumbers>> Normalization::ranges() const {
  std::vector<std::int64_t> tasks = {0};
  if (task_count(facts, machine, 1) > 0) tasks = {1, 4, 0};
  std::vector<Range<NormalizationNumbers>> ranges = {
      {"vectors", &NormalizationNumbers::vectors, {4, 2, 1, 8}},
      {"tasks", &NormalizationNumbers::tasks, tasks}};
  if (has_prologue(kernel, *facts.anchor)) ranges.push_back({"keep", &NormalizationNumbers::keep, {1, 0}});
  return ranges;
}

/// Steps of a whole row leave no loop behind, where the registers hold one; longer rows have chains to hide, no more.
std::int64_t Normalization::usual_vectors() const {
  if (facts.loops.empty()) return 1;
  const RunExtent& row = facts.loops[0];
  const std::int64_t in_registers = machine.vector_registers / 4;
  const bool is_one_step = !row.is_open && row.extent <= in_registers * facts.lanes;
  return vectors_for_row(row.extent, facts.lanes, is_one_step ? std::max<std::int64_t>(in_registers, 4) : 4);
}

/// A row is a chain of folds of a vector's lanes, a division, and what waits for them. Chains of several rows overlap, while what
/// they keep stays small.
std::int64_t Normalization::usual_rows() const {
  constexpr std::int64_t most_rows = 8;
  constexpr std::int64_t most_elements = 2048;
  const std::size_t rank = row_rank(kernel, *facts.anchor);
  if (facts.loops.size() <= rank || has_short_rows(facts) || has_common_logarithms(facts)) return 1;
  for (std::size_t d = 0; d < rank; ++d)
    if (facts.loops[d].is_open) return 1;
  const RunExtent& rows = facts.loops[rank];
  const std::int64_t in_cache = most_elements / product(facts.extents, 0, rank);
  const std::int64_t a_task = product(facts.extents, rank, facts.extents.size()) / machine.threads;
  const std::int64_t most = std::min({most_rows, in_cache, rows.least, a_task});
  if (most < 2) return 1;
  return rows.is_open ? most : ceil_div(rows.extent, ceil_div(rows.extent, most));
}

double Normalization::cost(const NormalizationNumbers& point) const {
  const double passes = point.keep > 0 ? 3 : 3.5;
  const double latency = 1 + 1 / static_cast<double>(point.vectors);
  return vector_seconds(facts.work * passes * latency, machine, point.tasks > 0 ? machine.threads : 1);
}

/// The pure stages that hold one number per row, and the one that holds a row (or "").
struct RowStages {
  std::vector<std::string> folds;
  std::vector<std::string> scalars;
  std::string row;
};
RowStages row_stages(const Node& anchor, const std::string& name) {
  const auto named = [&](const std::string& suffix) { return name + suffix; };
  switch (anchor.op) {
    case Op::softmax:
      return {{named("_max"), named("_sum")}, {named("_inv")}, named("_exp")};
    case Op::log_softmax:
      return {{named("_max"), named("_sum")}, {named("_log")}, ""};
    case Op::layer_norm:
      return {{named("_total"), named("_square")}, {named("_mean"), named("_rstd")}, ""};
    default:
      return {{named("_square")}, {named("_rstd")}, ""};
  }
}

void vectorize_row(ScheduleWriter& writer, const std::string& stage, const RunExtent& row, std::int64_t lanes,
                   std::int64_t vectors) {
  if (row.least < lanes) return;
  const std::int64_t step = lanes * std::min(vectors, row.least / lanes);
  const char* tail = row.is_multiple_of(step) ? "RoundUp" : "ShiftInwards";
  writer.add("{}.split(d0, d0, d0i, {}, TailStrategy::{}).vectorize(d0i, {}).unroll(d0i);", stage, step, tail,
             lanes);
}

struct NormalizationRows : Normalization {
  [[nodiscard]] std::vector<Range<NormalizationNumbers>> ranges() const;
  [[nodiscard]] Candidate at(const NormalizationNumbers& point) const;
  [[nodiscard]] Candidate at_short_rows(const NormalizationNumbers& point) const;
};

std::vector<Range<NormalizationNumbers>> NormalizationRows::ranges() const {
  std::vector<Range<NormalizationNumbers>> ranges = Normalization::ranges();
  if (heuristic.rows > 1) ranges.push_back({"rows", &NormalizationNumbers::rows, {heuristic.rows, 1}});
  return ranges;
}

Candidate NormalizationRows::at_short_rows(const NormalizationNumbers& point) const {
  ScheduleWriter writer;
  LoopNest nest(writer, facts.output, facts.loops);
  nest.move_inside(1);
  const std::int64_t step = nest.vectorize_inner(facts.lanes, 1);
  nest.move_inside(1);
  writer.add("{}.unroll({});", facts.output, nest.loops()[0].name);
  if (point.tasks > 0) nest.parallelize(task_count(facts, machine, point.tasks), 1);
  const Place place = {facts.output, nest.loops()[1].name};
  const RowStages stages = row_stages(*facts.anchor, facts.anchor_value);
  for (const std::string& stage : stages.folds) {
    compute_at(writer, stage, place);
    writer.add("{}.vectorize(d1, {});", stage, step);
    writer.add("{}.update(0).reorder(d1, r0).vectorize(d1, {}).unroll(r0);", stage, step);
  }
  for (const std::string& stage : stages.scalars) {
    compute_at(writer, stage, place);
    writer.add("{}.vectorize(d1, {});", stage, step);
  }
  std::vector<std::string> rows;
  if (!stages.row.empty()) rows.push_back(stages.row);
  if (point.keep > 0) rows.push_back(kernel.body.value(facts.anchor->inputs.front()).name);
  for (const std::string& stage : rows) {
    compute_at(writer, stage, place);
    writer.add("{}.reorder(d1, d0).vectorize(d1, {}).unroll(d0);", stage, step);
  }
  return {Form{}, writer.take()};
}

Candidate NormalizationRows::at(const NormalizationNumbers& point) const {
  if (has_short_rows(facts)) return at_short_rows(point);
  const std::size_t rank = row_rank(kernel, *facts.anchor);
  const bool has_vector_of_rows = has_common_logarithms(facts);
  const std::int64_t rows_of_block = has_vector_of_rows ? facts.lanes : point.rows;
  const bool is_block = rows_of_block > 1;
  const Dims folded(facts.extents.begin(), facts.extents.begin() + static_cast<std::ptrdiff_t>(rank));
  const std::int64_t lanes = lanes_of_row(facts.loops[0], facts.lanes);
  ScheduleWriter writer;
  LoopNest nest(writer, facts.output, facts.loops);
  nest.vectorize_inner(lanes, point.vectors);
  if (is_block) nest.block(rank, rows_of_block);
  const std::size_t kept = is_block ? rank + 1 : rank;
  Place place;
  if (nest.loops().size() > kept) {
    if (point.tasks > 0) nest.parallelize(task_count(facts, machine, point.tasks), kept);
    place = {facts.output, nest.loops()[kept].name};
  }
  const RowStages stages = row_stages(*facts.anchor, facts.anchor_value);
  for (const std::string& stage : stages.folds)
    fold_row(writer, stage, folded, lanes, point.vectors, place,
             is_block ? Place{stage, fmt::format("d{}", rank)} : place);
  for (const std::string& stage : stages.scalars) {
    compute_at(writer, stage, place);
    if (has_vector_of_rows) writer.add("{}.vectorize(d1, {});", stage, facts.lanes);
  }
  std::vector<std::string> kept_rows;
  if (!stages.row.empty()) kept_rows.push_back(stages.row);
  if (point.keep > 0) kept_rows.push_back(kernel.body.value(facts.anchor->inputs.front()).name);
  for (const std::string& stage : kept_rows) {
    compute_at(writer, stage, place);
    vectorize_row(writer, stage, facts.loops[0], lanes, point.vectors);
  }
  return {Form{}, writer.take()};
}

Binding bind_normalized_rows(const Kernel& kernel, const Machine& machine) {
  if (std::string refusal = refuses_normalized_rows(kernel); !refusal.empty()) return {refusal};
  return bind_space(NormalizationRows{{kernel, machine, facts_of(kernel, machine)}});
}

// ---- columns ----------------------------------------------------------------------------------------------

std::size_t axis_loop(const Kernel& kernel, const Node& anchor) {
  const TensorType& type = kernel.body.type(anchor.outputs.front());
  const auto from_inside = static_cast<std::size_t>(type.rank() - 1 - anchor.attributes.integer("axis"));
  return from_inside + (type.layout.channel_block > 0 ? 1 : 0);
}

std::string refuses_normalized_columns(const Kernel& kernel) {
  if (std::string reason = refuses_any(kernel); !reason.empty()) return reason;
  const Node& anchor = kernel.body.node(kernel.anchor);
  if (!is_softmax(anchor)) return "the anchor is no softmax";
  const TensorType& type = kernel.body.type(anchor.outputs.front());
  if (type.layout.channel_block > 0 && anchor.attributes.integer("axis") == 1)
    return "the axis is stored in blocks";
  if (axis_loop(kernel, anchor) == 0) return "the axis is the innermost";
  return "";
}

struct NormalizationColumns : Normalization {
  [[nodiscard]] Candidate at(const NormalizationNumbers& point) const;
};

Candidate NormalizationColumns::at(const NormalizationNumbers& point) const {
  ScheduleWriter writer;
  LoopNest nest(writer, facts.output, facts.loops);
  const std::int64_t step = nest.vectorize_inner(facts.lanes, 1);
  nest.move_inside(axis_loop(kernel, *facts.anchor));
  if (point.tasks > 0) nest.parallelize(task_count(facts, machine, point.tasks), 1);
  const Place place = {facts.output, nest.loops()[1].name};
  const RowStages stages = row_stages(*facts.anchor, facts.anchor_value);
  for (const std::string& stage : stages.folds)
    fold_columns(writer, stage, step, facts.lanes, {}, 1, false, place);
  for (const std::string& stage : stages.scalars) {
    compute_at(writer, stage, place);
    if (step > 1) writer.add("{}.vectorize(d0, {});", stage, step);
  }
  if (!stages.row.empty()) {
    compute_at(writer, stages.row, place);
    if (step > 1) writer.add("{}.vectorize(d0, {});", stages.row, step);
  }
  return {Form{}, writer.take()};
}

Binding bind_normalized_columns(const Kernel& kernel, const Machine& machine) {
  if (std::string refusal = refuses_normalized_columns(kernel); !refusal.empty()) return {refusal};
  return bind_space(NormalizationColumns{{kernel, machine, facts_of(kernel, machine)}});
}

}  // namespace

const Space normalization_rows_space = {"normalization_rows", bind_normalized_rows, {}, Space::Open::all};
const Space normalization_columns_space = {
    "normalization_columns", bind_normalized_columns, {}, Space::Open::all};

}  // namespace sylvite
