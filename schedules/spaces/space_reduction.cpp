#include <algorithm>
#include <span>

#include "frontend/graph/rewrite.h"
#include "frontend/ops/op_table.h"
#include "lowering/algorithms/problems.h"
#include "lowering/plan/run_extents.h"
#include "schedules/spaces/fold_schedule.h"
#include "schedules/spaces/spaces.h"

// Spaces for kernels whose anchor is reduce_*, arg_max, arg_min, a pooling, or a scan, an ordering or a
// scatter.
//   reduction_rows     the innermost input dim is folded: partial results in registers (fold_row); arg_max and arg_min in the
//                      form arg_rows. Rows that are shorter than a vector are folded a vector of rows at a time; what comes
//                      after folds of longer ones is, where it takes long
//   reduction_columns  it is not: each lane has a result of its own (fold_columns); also pooling, of dense images in the form
//                      pool_lines: a line of the window's columns, then its windows
// Parameters: `vectors` per step, parallel `tasks` per thread (0: one thread).

namespace sylvite {
namespace {

bool is_reduction(const Node& node) {
  return node.op == Op::reduce_sum || node.op == Op::reduce_max || node.op == Op::reduce_min ||
         node.op == Op::reduce_prod;
}
bool is_arg_reduction(const Node& node) {
  return node.op == Op::arg_max || node.op == Op::arg_min;
}
bool is_pool(const Node& node) {
  return node.op == Op::max_pool || node.op == Op::avg_pool;
}

/// Nodes with folds other than the anchor would be computed again for every element that reads them.
std::string refuses_other_folds(const Kernel& kernel, const Node* anchor) {
  if (kernel.body.outputs.size() != 1) return "the kernel has several outputs";
  for (const Node& node : kernel.body.nodes())
    if (&node != anchor && !update_stages(node.op).empty()) return "the kernel folds twice";
  return "";
}

/// The logical dim of each loop of a type, innermost first.
std::vector<std::int64_t> logical_dims(const TensorType& type) {
  std::vector<std::int64_t> dims;
  if (type.layout.channel_block > 0) dims.push_back(1);
  for (std::int64_t d = type.rank() - 1; d >= 0; --d) dims.push_back(d);
  return dims;
}

/// The folded loops of the anchor's input, and whether the fast one (the innermost longer than 1) is among
/// them.
struct Fold {
  Dims extents;   ///< of r0, r1, ...
  RunExtent row;  ///< r0
  bool fast_is_folded = false;
};
Fold fold_of(const Kernel& kernel, const Node& anchor) {
  const TensorType& type = kernel.body.type(anchor.inputs.front());
  const std::vector<std::int64_t> axes = folded_axes(anchor);
  const std::vector<std::int64_t> logical = logical_dims(type);
  const Dims extents = loop_extents(type);
  const std::vector<RunExtent> runs = run_extents(kernel, anchor.inputs.front());
  Fold fold;
  bool seen_fast = false;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const bool folded = std::find(axes.begin(), axes.end(), logical[d]) != axes.end();
    if (folded && fold.extents.empty()) fold.row = runs[d];
    if (folded) fold.extents.push_back(extents[d]);
    if (!seen_fast && extents[d] > 1) {
      seen_fast = true;
      fold.fast_is_folded = folded;
    }
  }
  return fold;
}

struct ReductionNumbers {
  std::int64_t vectors = 1;
  std::int64_t tasks = 0;
};

/// A kernel of either space, as it was read.
struct Reduction {
  const Kernel& kernel;
  const Machine& machine;
  KernelFacts facts;
  ReductionNumbers heuristic;

  [[nodiscard]] std::vector<Range<ReductionNumbers>> ranges() const {
    std::vector<std::int64_t> tasks = {0};
    if (task_count(facts, machine, 1) > 0) tasks = {1, 4, 0};
    return {{"vectors", &ReductionNumbers::vectors, {4, 2, 1, 8}},
            {"tasks", &ReductionNumbers::tasks, tasks}};
  }
  [[nodiscard]] double cost(const ReductionNumbers& point) const {
    const double latency = 1 + 1 / static_cast<double>(point.vectors);
    return vector_seconds(facts.work * latency, machine, point.tasks > 0 ? machine.threads : 1);
  }
};

Reduction read_reduction(const Kernel& kernel, const Machine& machine) {
  const KernelFacts facts = facts_of(kernel, machine);
  return {kernel, machine, facts, {.tasks = task_count(facts, machine, 1) > 0 ? 1 : 0}};
}

// ---- rows -------------------------------------------------------------------------------------------------

std::string refuses_folded_rows(const Kernel& kernel) {
  const Node* anchor = kernel.anchor == no_node ? nullptr : &kernel.body.node(kernel.anchor);
  if (anchor == nullptr || !(is_reduction(*anchor) || is_arg_reduction(*anchor)))
    return "the anchor is no reduction with an associative fold";
  if (std::string reason = refuses_other_folds(kernel, anchor); !reason.empty()) return reason;
  const Fold fold = fold_of(kernel, *anchor);
  if (!fold.fast_is_folded) return "the innermost dim is not folded";
  if (kernel.body.type(anchor->inputs.front()).layout.channel_block > 0)
    return "the folded channels are stored in blocks";
  return "";
}

/// How the results of several rows are taken together.
enum class ReductionBlock {
  none,
  lanes,  ///< rows that are shorter than a vector: each lane folds a row of its own
  work,   ///< what comes after the folds takes long: it is done for a vector of rows
};

/// The innermost loop of the output that is longer than 1, which is that of rows. REQUIRES one.
std::size_t loop_of_rows(const KernelFacts& facts) {
  const auto found = std::ranges::find_if(
      facts.loops, [](const RunExtent& loop) { return loop.is_open || loop.extent > 1; });
  return static_cast<std::size_t>(found - facts.loops.begin());
}

/// Is there, behind the fold, more than simple arithmetic? For one number it takes as long as for a vector.
bool has_late_work(const Kernel& kernel) {
  const std::span<const Node> late =
      std::span(kernel.body.nodes()).subspan(static_cast<std::size_t>(kernel.anchor) + 1);
  return std::ranges::any_of(late,
                             [](const Node& node) { return op_info(node.op).facts.cost >= Cost::function; });
}

ReductionBlock block_of_rows(const Kernel& kernel, const KernelFacts& facts, const Fold& fold) {
  const Node& anchor = *facts.anchor;
  const bool has_loops = loop_extents(kernel.body.type(anchor.outputs.front())) == facts.extents;
  const std::size_t rows = loop_of_rows(facts);
  if (!is_reduction(anchor) || !has_loops || rows == facts.loops.size() ||
      facts.loops[rows].least < facts.lanes)
    return ReductionBlock::none;
  const bool is_one_axis = !fold.row.is_open && product(fold.extents, 1, fold.extents.size()) == 1;
  const std::int64_t most = has_late_work(kernel) ? facts.lanes : facts.lanes - 1;
  if (is_one_axis && fold.extents[0] <= most) return ReductionBlock::lanes;
  // Of longer rows the folds are most; and the last block of a few rows shifts far inwards.
  const bool is_even = !facts.loops[rows].is_open &&
                       (facts.extents[rows] % facts.lanes == 0 || facts.extents[rows] >= 4 * facts.lanes);
  const bool is_short = is_one_axis && fold.extents[0] <= 8 * facts.lanes;
  return is_even && is_short && has_late_work(kernel) ? ReductionBlock::work : ReductionBlock::none;
}

struct ReductionRows : Reduction {
  Fold fold;

  [[nodiscard]] Candidate at(const ReductionNumbers& point) const;
  [[nodiscard]] Candidate at_blocks(const ReductionNumbers& point, ReductionBlock block) const;
  /// Places are 64 bits wide as results alone.
  [[nodiscard]] std::int64_t fold_lanes() const {
    const bool is_narrow = dtype_size(kernel.body.type(facts.anchor->inputs.front()).dtype) <= 4;
    return is_arg_reduction(*facts.anchor) && is_narrow ? machine.vector_floats : facts.lanes;
  }
};

Candidate ReductionRows::at_blocks(const ReductionNumbers& point, ReductionBlock block) const {
  ScheduleWriter writer;
  LoopNest nest(writer, facts.output, facts.loops);
  nest.drop_unit_loops();
  (void)nest.vectorize_inner(facts.lanes, 1);
  if (point.tasks > 0) nest.parallelize(task_count(facts, machine, point.tasks), 0);
  const Place place = {facts.output, nest.loops()[0].name};
  const std::string stage = facts.anchor_value + "_fold";
  const std::string rows = fmt::format("d{}", loop_of_rows(facts));
  if (block == ReductionBlock::work) {
    fold_row(writer, stage, fold.extents, lanes_of_row(fold.row, fold_lanes()), point.vectors, place,
             {stage, rows});
    return {Form{}, writer.take()};
  }
  compute_at(writer, stage, place);
  writer.add("{}.vectorize({}, {});", stage, rows, facts.lanes);
  writer.add("{0}.update(0).reorder({1}, r0).vectorize({1}, {2}).unroll(r0);", stage, rows, facts.lanes);
  return {Form{}, writer.take()};
}

Candidate ReductionRows::at(const ReductionNumbers& point) const {
  if (const ReductionBlock block = block_of_rows(kernel, facts, fold); block != ReductionBlock::none)
    return at_blocks(point, block);
  ScheduleWriter writer;
  LoopNest nest(writer, facts.output, facts.loops);
  nest.drop_unit_loops();
  Place place;
  if (!nest.loops().empty() && !nest.loops()[0].is_one()) {
    if (point.tasks > 0) nest.parallelize(task_count(facts, machine, point.tasks), 0);
    place = {facts.output, nest.loops()[0].name};
  }
  const bool is_arg = is_arg_reduction(*facts.anchor);
  const std::int64_t lanes = lanes_of_row(fold.row, fold_lanes());
  if (is_arg)
    fold_row(writer, facts.anchor_value + "_best", fold.extents, lanes, point.vectors, place, place);
  fold_row(writer, facts.anchor_value + "_fold", fold.extents, lanes, point.vectors, place, place);
  return {is_arg ? Form{"arg_rows", {}} : Form{}, writer.take()};
}

Binding bind_folded_rows(const Kernel& kernel, const Machine& machine) {
  if (std::string refusal = refuses_folded_rows(kernel); !refusal.empty()) return {refusal};
  ReductionRows read{read_reduction(kernel, machine), fold_of(kernel, kernel.body.node(kernel.anchor))};
  read.heuristic.vectors = vectors_for_row(read.fold.extents[0], read.fold_lanes(), 8);
  return bind_space(std::move(read));
}

// ---- columns ----------------------------------------------------------------------------------------------

std::string refuses_folded_columns(const Kernel& kernel) {
  const Node* anchor = kernel.anchor == no_node ? nullptr : &kernel.body.node(kernel.anchor);
  if (anchor == nullptr || !(is_reduction(*anchor) || is_arg_reduction(*anchor) || is_pool(*anchor)))
    return "the anchor is no reduction or pooling";
  return refuses_other_folds(kernel, anchor);
}

int reduction_fold_rank(const Kernel& kernel, const Node& anchor) {
  return is_pool(anchor) ? static_cast<int>(anchor.attributes.integers("kernel").size())
                         : static_cast<int>(fold_of(kernel, anchor).extents.size());
}

constexpr std::int64_t most_unrolled_taps = 12;

bool is_small_window(const Node& anchor) {
  return is_pool(anchor) &&
         checked_product(anchor.attributes.integers("kernel"), "window") <= most_unrolled_taps;
}

/// A line of the columns of a pooling's windows, in vectors, where its results need it.
void fold_line(ScheduleWriter& writer, const KernelFacts& facts, const Place& place) {
  const std::string stage = facts.anchor_value + "_line";
  compute_at(writer, stage, place);
  writer.add("{}.vectorize(d0, {});", stage, facts.lanes);
  const std::int64_t lines = pool_lines(*facts.anchor);
  if (lines == 1) return;
  writer.add("{}.update(0).split(d0, d0, v, {}, TailStrategy::RoundUp).reorder(v, r0, d0).vectorize(v);",
             stage, facts.lanes);
  if (lines <= most_unrolled_taps) writer.add("{}.update(0).unroll(r0);", stage);
}

/// Are positions along the innermost dim clamped to the input? Then those of a vector may lie behind the last result.
bool clamps_columns(const Kernel& kernel, const Node& anchor) {
  return is_pool(anchor) && has_pads(kernel, anchor, anchor.attributes.integers("kernel").size() - 1);
}

/// Whether a pooling's fold that is stored by itself is computed in vectors along its innermost dim.
bool folds_dense_columns(const TensorType& folded) {
  constexpr std::int64_t least_row = 4;
  const Dims extents = loop_extents(folded);
  return folded.layout.channel_block == 0 && !extents.empty() && extents[0] >= least_row;
}

/// Vectors along the innermost dim of a fold that is stored by itself, a folded element at a time.
void fold_dense_columns(ScheduleWriter& writer, const Kernel& kernel, const KernelFacts& facts,
                        const std::string& stage, bool parallel) {
  const Dims extents = loop_extents(kernel.body.type(facts.anchor->outputs.front()));
  const bool by_lines = pools_by_lines(kernel.body, *facts.anchor);
  const int rank = by_lines ? 1 : reduction_fold_rank(kernel, *facts.anchor);
  std::string folds;
  for (int r = 0; r < rank; ++r) folds += fmt::format("r{}, ", r);
  std::int64_t lanes = facts.lanes;
  while (lanes / 2 >= extents[0]) lanes /= 2;
  const char* tail = by_lines || clamps_columns(kernel, *facts.anchor) ? "TailStrategy::RoundUp"
                                                                       : "TailStrategy::GuardWithIf";
  writer.add("{}.compute_root().vectorize(d0, {}, {});", stage, lanes, tail);
  writer.add("{}.update(0).split(d0, d0, v, {}, {}).reorder(v, {}d0).vectorize(v);", stage, lanes, tail,
             folds);
  for (int r = 0; is_small_window(*facts.anchor) && r < rank; ++r)
    writer.add("{}.update(0).unroll(r{});", stage, r);
  if (by_lines) fold_line(writer, facts, {stage, "d1"});
  std::size_t outermost = extents.size() - 1;
  while (outermost > 0 && extents[outermost] == 1) --outermost;
  if (parallel && outermost > 0) writer.add("{}.update(0).parallel(d{});", stage, outermost);
}

/// The fold by itself, where the output has other loops: blocks of channels that become dense, say.
void fold_apart(ScheduleWriter& writer, const Kernel& kernel, const KernelFacts& facts,
                const std::string& stage, bool parallel) {
  const TensorType& type = kernel.body.type(facts.anchor->outputs.front());
  const std::int64_t block = type.layout.channel_block;
  const Dims extents = loop_extents(type);
  if (folds_dense_columns(type)) return fold_dense_columns(writer, kernel, facts, stage, parallel);
  if (block == 0 || block % facts.lanes != 0) {
    writer.add("{}.compute_root();", stage);
    return;
  }
  fold_columns(writer, stage, block, facts.lanes, {}, reduction_fold_rank(kernel, *facts.anchor), false, {});
  const int blocks = type.rank() - 1;  // the dim of them
  if (parallel && extents[static_cast<std::size_t>(blocks)] > 1)
    writer.add("{}.update(0).parallel(d{});", stage, blocks);
}

struct ReductionColumns : Reduction {
  [[nodiscard]] Candidate at(const ReductionNumbers& point) const;

 private:
  [[nodiscard]] std::string stage() const { return facts.anchor_value + "_fold"; }
  [[nodiscard]] const TensorType& folded() const { return kernel.body.type(facts.anchor->outputs.front()); }
  /// The fold's own d0 is the output's only when their types agree in layout and no loop was fused away.
  [[nodiscard]] bool has_same_loops() const {
    return loop_extents(folded()) == facts.extents && !facts.extents.empty();
  }
  void fold_with_output(ScheduleWriter& writer, const ReductionNumbers& point, bool by_lines) const;
  void fold_ahead(ScheduleWriter& writer, const ReductionNumbers& point) const;
};

Candidate ReductionColumns::at(const ReductionNumbers& point) const {
  const bool same_loops = has_same_loops();
  const bool by_lines =
      pools_by_lines(kernel.body, *facts.anchor) && (same_loops || folds_dense_columns(folded()));
  ScheduleWriter writer;
  if (same_loops)
    fold_with_output(writer, point, by_lines);
  else
    fold_ahead(writer, point);
  return {by_lines ? Form{"pool_lines", {}} : Form{}, writer.take()};
}

void ReductionColumns::fold_ahead(ScheduleWriter& writer, const ReductionNumbers& point) const {
  fold_apart(writer, kernel, facts, stage(), point.tasks > 0);
  if (facts.extents.empty()) return;
  LoopNest nest(writer, facts.output, facts.loops);
  nest.vectorize_inner(facts.lanes, 1);
  // Channels become innermost: pixels that lie together are read while their lines are there.
  const int block = kernel.body.type(kernel.body.outputs.front()).layout.channel_block;
  if (block > 0 && folded().layout.channel_block == 0 && nest.loops().size() > 1) (void)nest.tile(1, 16);
  if (point.tasks > 0) nest.parallelize(task_count(facts, machine, point.tasks), 0);
}

void ReductionColumns::fold_with_output(ScheduleWriter& writer, const ReductionNumbers& point,
                                        bool by_lines) const {
  // The largest of bf16 is found by their bits, 16 to an element.
  const bool by_bits =
      facts.anchor->op == Op::max_pool && kernel.body.type(facts.anchor->inputs.front()).dtype == DType::bf16;
  const int lanes = by_bits ? 2 * facts.lanes : facts.lanes;
  LoopNest nest(writer, facts.output, facts.loops);
  const std::int64_t step = nest.vectorize_inner(lanes, point.vectors);
  // The lines of a plane are computed ahead of all its windows: what was stored just before and lies otherwise in vectors is
  // waited for.
  const std::size_t serial = by_lines ? std::min<std::size_t>(2, nest.loops().size() - 1) : 0;
  const std::int64_t tasks = task_count(facts, machine, point.tasks);
  std::int64_t planes = 1;
  for (std::size_t d = serial; d < facts.extents.size(); ++d) planes *= facts.extents[d];
  const bool has_planes = serial < 2 || planes >= tasks;
  if (point.tasks > 0) nest.parallelize(tasks, has_planes ? serial : 1);
  const int rank = by_lines ? 1 : reduction_fold_rank(kernel, *facts.anchor);
  fold_columns(writer, stage(), step, lanes, {}, rank, is_small_window(*facts.anchor),
               {facts.output, nest.loops()[0].name});
  if (by_lines)
    fold_line(writer, facts, {facts.output, nest.loops()[std::min(serial, nest.loops().size() - 1)].name});
}

Binding bind_folded_columns(const Kernel& kernel, const Machine& machine) {
  if (std::string refusal = refuses_folded_columns(kernel); !refusal.empty()) return {refusal};
  ReductionColumns read{read_reduction(kernel, machine)};
  read.heuristic.vectors = is_pool(*read.facts.anchor) ? 1 : 4;
  return bind_space(std::move(read));
}

}  // namespace

const Space reduction_rows_space = {"reduction_rows", bind_folded_rows, {}, Space::Open::all};
const Space reduction_columns_space = {"reduction_columns", bind_folded_columns, {}, Space::Open::all};

}  // namespace sylvite
