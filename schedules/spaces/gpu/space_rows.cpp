#include <algorithm>

#include "base/error.h"
#include "frontend/ops/op_table.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/plan/run_extents.h"
#include "schedules/spaces/gpu/nest.h"
#include "schedules/spaces/register_tile.h"
#include "schedules/spaces/spaces.h"

// Space gpu_rows: kernels that fold rows of the innermost dim: softmax, layer_norm, rms_norm, reduce_*. A
// block takes `rows` rows, `threads` threads to each. A fold has three levels: each thread folds every
// `threads`-th vector of the row in a register, groups of `group` such results are folded by a thread each,
// and one thread folds the groups.
//   vector   elements that a thread reads at once
//   threads  threads of a row
//   rows     rows of a block
//   group    results of threads that are folded at a time
//   keep     softmax: 1 keeps the exponentials in shared memory, 0 computes them again

namespace sylvite {
namespace {

constexpr std::int64_t least_row = 64;
constexpr std::int64_t least_norm =
    32;  // which walks its row several times, and in one thread alone otherwise
constexpr std::int64_t most_unrolled = 16;
constexpr std::int64_t most_grid = 65535;  // blocks along the grid's second and third dims

bool is_norm(const Node& anchor) {
  return has_trait(anchor.op, OpTrait::normalization) && anchor.op != Op::batch_norm;
}
bool is_row_fold(const Node& anchor) {
  return anchor.op == Op::reduce_sum || anchor.op == Op::reduce_max || anchor.op == Op::reduce_min ||
         anchor.op == Op::reduce_prod;
}

/// Whether the anchor folds exactly the innermost dim of its input.
bool folds_rows(const Kernel& kernel, const Node& anchor) {
  const std::int64_t last = kernel.body.type(anchor.inputs.front()).rank() - 1;
  if (is_row_fold(anchor)) return anchor.attributes.integers("axes") == std::vector<std::int64_t>{last};
  return anchor.attributes.integer("axis") == last;
}

RunExtent row_of(const Kernel& kernel, const Node& anchor) {
  return run_extents(kernel, anchor.inputs.front()).front();
}

/// In any run.
bool fits_grid(const Kernel& kernel, const KernelFacts& facts, std::size_t position) {
  const ValueId output = kernel.body.outputs.front();
  const std::size_t rank = facts.extents.size();
  std::int64_t outer = 1;
  for (std::size_t d = position + 1; d < rank; ++d) {
    const std::int64_t most = most_extent(kernel, output, rank - 1 - d);
    if (most > most_grid) return false;
    outer *= std::max<std::int64_t>(most, 1);
    if (outer > most_grid) return false;
  }
  return true;
}

/// Does the output have the folded dim, and others?
bool keeps_folded_dim(const Node& anchor, const KernelFacts& facts) {
  return !is_norm(anchor) && anchor.attributes.integer("keepdims") != 0 && facts.extents.size() > 1;
}

/// The loop of the output that blocks take several of: of one row that is folded the only one.
std::size_t row_position(const Node& anchor, const KernelFacts& facts) {
  return is_norm(anchor) || keeps_folded_dim(anchor, facts) ? 1 : 0;
}

std::string refuses_rows(const Kernel& kernel, const KernelFacts& facts) {
  if (facts.anchor == nullptr || !(is_norm(*facts.anchor) || is_row_fold(*facts.anchor)))
    return "the anchor is no normalisation or reduction with an associative fold";
  if (kernel.body.outputs.size() != 1) return "the kernel has several outputs";
  for (const Node& node : kernel.body.nodes())
    if (&node != facts.anchor && !update_stages(node.op).empty()) return "the kernel folds twice";
  const TensorType& type = kernel.body.type(facts.anchor->inputs.front());
  if (type.rank() == 0 || type.layout.channel_block > 0 || !folds_rows(kernel, *facts.anchor) ||
      facts.anchor->attributes.has("groups"))
    return "not the innermost dim alone is folded";
  if (row_of(kernel, *facts.anchor).extent < (is_norm(*facts.anchor) ? least_norm : least_row))
    return "the rows are short";
  if (facts.extents.empty()) return "there is one row";
  const std::size_t position = row_position(*facts.anchor, facts);
  if (facts.extents.size() <= position) return "there is one row";
  if (!fits_grid(kernel, facts, position)) return "there are too many rows for a grid";
  if (loop_extents(kernel.body.type(facts.anchor->outputs.front())) != facts.extents)
    return "the output's loops are not the anchor's";
  return "";
}

std::int64_t widest_row_vector(const Kernel& kernel, const Node& anchor) {
  const auto size = static_cast<std::int64_t>(dtype_size(kernel.body.type(anchor.inputs.front()).dtype));
  std::int64_t vector = std::max<std::int64_t>(1, 16 / size);
  while (!row_of(kernel, anchor).is_multiple_of(vector)) vector /= 2;
  return vector;
}

/// How many rows a block may take: divisors of the rows' loop.
std::vector<std::int64_t> rows_of_block(const KernelFacts& facts) {
  const std::size_t position = row_position(*facts.anchor, facts);
  std::vector<std::int64_t> divisors;
  for (const std::int64_t rows : {1, 2, 4})
    if (facts.loops[position].is_multiple_of(rows)) divisors.push_back(rows);
  return divisors;
}

struct RowNumbers {
  std::int64_t vector = 1;
  std::int64_t threads = 32;
  std::int64_t rows = 1;
  std::int64_t group = 16;
  std::int64_t keep = 0;
};

struct RowKernel {
  const Kernel& kernel;
  KernelFacts facts;
  RowNumbers heuristic;

  [[nodiscard]] std::vector<Range<RowNumbers>> ranges() const;
  [[nodiscard]] Candidate at(const RowNumbers& point) const;
};

std::vector<Range<RowNumbers>> RowKernel::ranges() const {
  const std::int64_t vector = heuristic.vector;
  const RunExtent row = row_of(kernel, *facts.anchor);
  const std::int64_t vectors = row.extent / vector;
  std::vector<std::int64_t> widths = {vector};
  if (vector > 1) widths.push_back(vector / 2);
  const bool may_keep = facts.anchor->op == Op::softmax && !row.is_open;
  return {
      {"vector", &RowNumbers::vector, widths},
      {"threads", &RowNumbers::threads, up_to(std::max<std::int64_t>(vectors, 32), {128, 256, 512, 64, 32})},
      {"rows", &RowNumbers::rows, rows_of_block(facts)},
      {"group", &RowNumbers::group, {16, 8, 32}},
      {"keep", &RowNumbers::keep, may_keep ? std::vector<std::int64_t>{0, 1} : std::vector<std::int64_t>{0}}};
}

RowNumbers first_row_point(const Kernel& kernel, const KernelFacts& facts) {
  RowNumbers point{.vector = widest_row_vector(kernel, *facts.anchor)};
  const std::int64_t vectors = row_of(kernel, *facts.anchor).extent / point.vector;
  while (point.threads < 256 && point.threads * 4 <= vectors) point.threads *= 2;
  if (point.threads < 128) point.rows = std::min(rows_of_block(facts).back(), 128 / point.threads);
  return point;
}

/// What all stages of one kernel share.
struct RowPlan {
  std::string output;
  std::string block = "block";
  std::string row_var;  ///< the loop of a block's rows in stages without the row itself
  RunExtent row;
  std::int64_t vector = 1;
  std::int64_t threads = 1;
  std::int64_t rows = 1;
  std::int64_t group = 16;

  [[nodiscard]] std::int64_t steps() const { return ceil_div(row.extent, vector * threads); }
  [[nodiscard]] bool is_unrolled() const { return !row.is_open && steps() <= most_unrolled; }
  [[nodiscard]] bool is_exact() const { return row.is_multiple_of(vector * threads); }
  /// The loops of threads: x along `loop`, y along the rows when a block has several.
  [[nodiscard]] std::string threads_of(const std::string& loop) const {
    if (rows == 1) return fmt::format(".gpu_threads({})", loop);
    return fmt::format(".reorder({}, {}).gpu_threads({}, {})", loop, row_var, loop, row_var);
  }
};

/// One fold over the rows, in three levels; see above. A level is folded in registers (a stage inside the
/// loops of its copy) and handed on through shared memory (the copy).
void fold_rows(ScheduleWriter& writer, const std::string& stage, const RowPlan& plan) {
  const std::string own = stage + "_thread";
  const std::string all = stage + "_threads";
  const std::string group = stage + "_group";
  const std::string groups = stage + "_groups";
  const std::string row = stage + "_row";
  const std::string place = fmt::format(".compute_at({}, {})", plan.output, plan.block);
  const bool is_vector = plan.vector > 1;
  const bool has_groups = plan.threads > plan.group;
  std::string from = "r0";
  if (is_vector) {
    writer.add("{}.update(0).split(r0, vectors, lane, {});", stage, plan.vector);
    from = "vectors";
  }
  writer.add("{}.update(0).split({}, step, thread, {}, TailStrategy::GuardWithIf);", stage, from,
             plan.threads);
  writer.add("Func {} = {}.update(0).rfactor(thread, u);", own, stage);
  if (has_groups) {
    // Neighbouring threads fold neighbouring results: no two of a warp meet in one bank.
    writer.add("{}.update(0).split(thread, within, which, {});", stage, plan.threads / plan.group);
    writer.add("Func {} = {}.update(0).rfactor(which, w);", group, stage);
  }
  writer.add("Func {} = {}.in({});", all, own, has_groups ? group : stage);
  writer.add_line(fmt::format("{}{}{};", all, place, plan.threads_of("u")));
  writer.add("{}.compute_at({}, u);", own, all);
  const std::string unroll =
      plan.is_unrolled() ? ".unroll(step)" : ".unroll(step, 4, TailStrategy::GuardWithIf)";
  writer.add_line(fmt::format("{}.update(0).reorder({}step){}{};", own, is_vector ? "lane, " : "",
                              is_vector ? ".atomic().vectorize(lane)" : "",
                              plan.row.is_open || plan.steps() > 1 ? unroll : ""));
  if (has_groups) {
    writer.add("Func {} = {}.in({});", groups, group, stage);
    writer.add_line(fmt::format("{}{}{};", groups, place, plan.threads_of("w")));
    writer.add("{}.compute_at({}, w);", group, groups);
    writer.add("{}.update(0).unroll(within);", group);
  }
  writer.add("Func {} = {}.in();", row, stage);
  writer.add_line(fmt::format("{}{}.gpu_threads({});", row, place, plan.row_var));
  writer.add("{}.compute_at({}, {});", stage, row, plan.row_var);
  writer.add("{}.update(0).unroll({});", stage, has_groups ? "which" : "thread");
}

/// A stage over whole rows, d0 first: threads take neighbouring vectors.
void walk_rows(ScheduleWriter& writer, const std::string& stage, const RowPlan& plan) {
  const char* guard = plan.is_exact() ? "TailStrategy::RoundUp" : "TailStrategy::GuardWithIf";
  if (plan.vector > 1) {
    writer.add("{}.split(d0, vectors, lane, {}, TailStrategy::RoundUp).vectorize(lane);", stage, plan.vector);
    writer.add("{}.split(vectors, step, thread, {}, {});", stage, plan.threads, guard);
  } else {
    writer.add("{}.split(d0, step, thread, {}, {});", stage, plan.threads, guard);
  }
}

/// Splits the rows of the output among blocks. The loops after `first` are dims of the grid of their own:
/// were they fused with the rows, the stages of a block would not be known to need its rows alone. A grid has
/// three dims, so that the loops after the third are fused with it.
void block_rows(ScheduleWriter& writer, const RowPlan& plan, std::size_t first, const Dims& extents,
                const std::string& inside) {
  const std::string row_loop = fmt::format("d{}", first);
  std::string block = row_loop;
  std::string order = inside;
  if (plan.rows > 1) {
    writer.add("{}.split({}, part, row, {}, TailStrategy::RoundUp);", plan.output, row_loop, plan.rows);
    block = "part";
    order += (order.empty() ? "" : ", ") + std::string("row");
  }
  order += (order.empty() ? "" : ", ") + block;
  for (std::size_t d = first + 1; d < extents.size(); ++d) order += fmt::format(", d{}", d);
  writer.add("{}.reorder({});", plan.output, order);
  std::string grid = "block";
  for (std::size_t d = first + 1; d < extents.size() && d < first + 3; ++d) {
    std::string loop = fmt::format("d{}", d);
    for (std::size_t outer = d + 1; d == first + 2 && outer < extents.size(); ++outer) {
      const std::string fused = fmt::format("blocks{}", outer);
      writer.add("{}.fuse({}, d{}, {});", plan.output, loop, outer, fused);
      loop = fused;
    }
    grid += ", " + loop;
  }
  writer.add("{}.split({}, block, unit, 1).gpu_blocks({});", plan.output, block, grid);
}

Candidate RowKernel::at(const RowNumbers& point) const {
  const bool norm = is_norm(*facts.anchor);
  const Algorithm algorithm = build_algorithm(kernel, device_form);
  RowPlan plan;
  plan.output = facts.output;
  plan.row = row_of(kernel, *facts.anchor);
  plan.vector = point.vector;
  plan.threads = point.threads;
  plan.rows = point.rows;
  plan.group = std::min(point.group, plan.threads);
  const bool keepdims = keeps_folded_dim(*facts.anchor, facts);
  const std::size_t position = row_position(*facts.anchor, facts);
  plan.row_var = fmt::format("d{}", position);
  if (!facts.loops[position].is_multiple_of(plan.rows))
    throw UnsupportedError("{} rows of a block do not divide {}", plan.rows, facts.extents[position]);
  if (plan.threads * plan.rows > 1024) throw UnsupportedError("a block has at most 1024 threads");
  ScheduleWriter writer;
  if (norm) {
    walk_rows(writer, plan.output, plan);
    block_rows(writer, plan, 1, facts.extents, plan.vector > 1 ? "lane, step, thread" : "step, thread");
    if (plan.is_unrolled()) writer.add("{}.unroll(step);", plan.output);
    writer.add("{}.gpu_threads({});", plan.output, plan.rows > 1 ? "thread, row" : "thread");
  } else {
    block_rows(writer, plan, position, facts.extents, keepdims ? "d0" : "");
    if (plan.rows > 1) writer.add("{}.gpu_threads(row);", plan.output);
  }
  const std::string& value = facts.anchor_value;
  if (point.keep != 0) {
    const std::string power = value + "_exp";
    writer.add("{}.compute_at({}, block).store_in(MemoryType::GPUShared);", power, plan.output);
    walk_rows(writer, power, plan);
    writer.add("{}.reorder({}step, thread, {});", power, plan.vector > 1 ? "lane, " : "", plan.row_var);
    if (plan.is_unrolled()) writer.add("{}.unroll(step);", power);
    writer.add_line(power + plan.threads_of("thread") + ";");
  }
  for (const char* once : {"_inv", "_log", "_rstd"})
    if (algorithm.stages.contains(value + once))
      writer.add("{}{}.compute_at({}, thread);", value, once, plan.output);
  for (const std::string& suffix : update_stages(facts.anchor->op)) fold_rows(writer, value + suffix, plan);
  return {device_form, writer.take()};
}

Binding bind_rows(const Kernel& kernel, const Machine& machine) {
  const KernelFacts facts = facts_of(kernel, machine);
  if (std::string refusal = refuses_rows(kernel, facts); !refusal.empty()) return {refusal};
  return bind_space(RowKernel{kernel, facts, first_row_point(kernel, facts)});
}

}  // namespace

const Space gpu_rows_space = {"gpu_rows", bind_rows, {}, Space::Open::extents};

}  // namespace sylvite
