#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/ops/op_table.h"
#include "lowering/algorithms/algorithm.h"
#include "schedules/spaces/gpu/nest.h"
#include "schedules/spaces/spaces.h"

// Space gpu_columns: reductions that leave the innermost dim. The folded dims are cut into `chunks`, each
// folded by blocks of its own, whose results go through memory; in a block, `rows` rows of threads fold every
// `rows`-th row, a vector of columns each, and meet in shared memory. A thread per column folds the chunks.
//   vector   columns of a thread
//   columns  threads side by side
//   rows     threads on top of each other
//   chunks   parts of the folded dims

namespace sylvite {
namespace {

constexpr std::int64_t least_fold = 32;

bool is_column_fold(const Node& node) {
  return node.op == Op::reduce_sum || node.op == Op::reduce_max || node.op == Op::reduce_min ||
         node.op == Op::reduce_prod;
}

/// Elements that one result folds.
std::int64_t fold_length(const Kernel& kernel, const Node& anchor) {
  const std::int64_t results = kernel.body.type(anchor.outputs.front()).element_count();
  return results == 0 ? 0 : kernel.body.type(anchor.inputs.front()).element_count() / results;
}

std::string refuses_columns(const Kernel& kernel, const KernelFacts& facts) {
  constexpr std::int64_t lanes = 32;
  if (facts.anchor == nullptr || !is_column_fold(*facts.anchor))
    return "the anchor is no reduction with an associative fold";
  if (kernel.body.outputs.size() != 1) return "the kernel has several outputs";
  for (const Node& node : kernel.body.nodes())
    if (&node != facts.anchor && !update_stages(node.op).empty()) return "the kernel folds twice";
  const std::vector<std::int64_t>& axes = facts.anchor->attributes.integers("axes");
  const TensorType& type = kernel.body.type(facts.anchor->inputs.front());
  const std::int64_t innermost = type.layout.channel_block > 0 ? 1 : type.rank() - 1;
  if (std::find(axes.begin(), axes.end(), innermost) != axes.end()) return "the innermost dim is folded";
  if (facts.extents.empty() || loop_extents(kernel.body.type(facts.anchor->outputs.front())) != facts.extents)
    return "the output's loops are not the fold's";
  if (facts.extents[0] % lanes != 0) return "the columns do not fill warps";
  if (fold_length(kernel, *facts.anchor) < least_fold) return "the columns are short";
  return "";
}

std::int64_t widest_column_vector(const Kernel& kernel, const KernelFacts& facts) {
  constexpr std::int64_t lanes = 32;
  const auto size =
      static_cast<std::int64_t>(dtype_size(kernel.body.type(facts.anchor->inputs.front()).dtype));
  std::int64_t vector = std::max<std::int64_t>(1, 16 / size);
  while (facts.extents[0] % (lanes * vector) != 0) vector /= 2;
  return vector;
}

struct ColumnNumbers {
  std::int64_t vector = 1;
  std::int64_t columns = 32;
  std::int64_t rows = 8;
  std::int64_t chunks = 1;
};

struct Columns {
  const Kernel& kernel;
  KernelFacts facts;
  ColumnNumbers heuristic;

  [[nodiscard]] std::vector<Range<ColumnNumbers>> ranges() const;
  [[nodiscard]] Candidate at(const ColumnNumbers& point) const;
};

std::vector<Range<ColumnNumbers>> Columns::ranges() const {
  const std::int64_t widest = widest_column_vector(kernel, facts);
  Range<ColumnNumbers> vector{"vector", &ColumnNumbers::vector, {}};
  for (std::int64_t width = widest; width >= 1; width /= 2) vector.values.push_back(width);
  Range<ColumnNumbers> columns{"columns", &ColumnNumbers::columns, {32}};
  if (facts.extents[0] % (64 * widest) == 0) columns.values.push_back(64);
  return {vector,
          columns,
          {"rows", &ColumnNumbers::rows, {8, 4, 16}},
          {"chunks", &ColumnNumbers::chunks, {64, 32, 128, 16, 256}}};
}

ColumnNumbers first_column_point(const Kernel& kernel, const Machine& machine, const KernelFacts& facts) {
  ColumnNumbers point{.vector = widest_column_vector(kernel, facts)};
  // About eight blocks for each multiprocessor.
  std::int64_t blocks = 1;
  for (const std::int64_t extent : facts.extents) blocks *= extent;
  blocks /= 32 * point.vector;
  while (point.chunks < 128 && blocks * point.chunks < std::int64_t{8} * machine.gpu->multiprocessors &&
         point.chunks * 64 <= fold_length(kernel, *facts.anchor)) {
    point.chunks *= 2;
  }
  return point;
}

Candidate Columns::at(const ColumnNumbers& point) const {
  const auto [vector, columns, rows, chunks] = point;
  const std::int64_t length = fold_length(kernel, *facts.anchor);
  if (facts.extents[0] % (columns * vector) != 0)
    throw UnsupportedError("{} columns do not divide {}", columns * vector, facts.extents[0]);
  const std::int64_t chunk = ceil_div(length, chunks);
  const std::string fold = facts.anchor_value + "_fold";
  const std::string part = fold + "_chunk";
  const std::string parts = fold + "_chunks";
  const std::string own = fold + "_thread";
  const std::string all = fold + "_threads";
  ScheduleWriter writer;
  std::vector<std::string> loops;
  loops.reserve(facts.extents.size());
  for (std::size_t d = 0; d < facts.extents.size(); ++d) loops.push_back(fmt::format("d{}", d));
  gpu_thread_each(writer, facts.output, loops, gpu_block_threads);
  writer.add("{}.compute_at({}, thread);", fold, facts.output);
  std::string folded = "r0";
  const Halide::Func func = build_algorithm(kernel, device_form).stages.at(fold);
  for (std::size_t r = 1; r < func.rvars(0).size(); ++r) {
    writer.add("{}.update(0).fuse({}, r{}, rows{});", fold, folded, r, r);
    folded = fmt::format("rows{}", r);
  }
  writer.add("{}.update(0).split({}, chunk, within, {}, TailStrategy::GuardWithIf);", fold, folded, chunk);
  writer.add("Func {} = {}.update(0).rfactor(chunk, u);", part, fold);
  writer.add("{}.update(0).split(within, step, row, {}, TailStrategy::GuardWithIf);", part, rows);
  writer.add("Func {} = {}.update(0).rfactor(row, w);", own, part);
  writer.add("Func {} = {}.in({});", parts, part, fold);
  writer.add("Func {} = {}.in({});", all, own, part);
  // A block: `columns` vectors of one chunk.
  writer.add("{}.compute_root().split(d0, block, within, {}, TailStrategy::RoundUp);", parts,
             columns * vector);
  writer.add("{}.split(within, column, lane, {}, TailStrategy::RoundUp);", parts, vector);
  std::string order = "lane, column, block, u";
  for (std::size_t d = 1; d < loops.size(); ++d) order += ", " + loops[d];
  writer.add("{}.reorder({}).fuse(block, u, blocks0);", parts, order);
  std::string block = "blocks0";
  for (std::size_t d = 1; d < loops.size(); ++d) {
    writer.add("{}.fuse({}, {}, blocks{});", parts, block, loops[d], d);
    block = fmt::format("blocks{}", d);
  }
  const char* vectorize = vector > 1 ? ".vectorize(lane)" : "";
  writer.add_line(fmt::format("{}.gpu_blocks({}).gpu_threads(column){};", parts, block, vectorize));
  writer.add("{}.compute_at({}, column);", part, parts);
  if (vector > 1) writer.add("{}.bound_extent(d0, {}).vectorize(d0);", part, vector);
  writer.add_line(
      fmt::format("{}.update(0).reorder(d0, row){}.unroll(row);", part, vector > 1 ? ".vectorize(d0)" : ""));
  writer.add("{}.compute_at({}, {});", all, parts, block);
  writer.add("{}.split(d0, column, lane, {}, TailStrategy::RoundUp).reorder(lane, column, w);", all, vector);
  writer.add_line(fmt::format("{}.gpu_threads(column, w){};", all, vectorize));
  writer.add("{}.compute_at({}, column);", own, all);
  if (vector > 1) writer.add("{}.bound_extent(d0, {}).vectorize(d0);", own, vector);
  writer.add_line(fmt::format("{}.update(0).reorder(d0, step){}.unroll(step, 8, TailStrategy::GuardWithIf);",
                              own, vector > 1 ? ".vectorize(d0)" : ""));
  return {device_form, writer.take()};
}

Binding bind_columns(const Kernel& kernel, const Machine& machine) {
  const KernelFacts facts = facts_of(kernel, machine);
  if (std::string refusal = refuses_columns(kernel, facts); !refusal.empty()) return {refusal};
  return bind_space(Columns{kernel, facts, first_column_point(kernel, machine, facts)});
}

}  // namespace

const Space gpu_columns_space = {"gpu_columns", bind_columns};

}  // namespace sylvite
