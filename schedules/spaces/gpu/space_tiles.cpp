#include <algorithm>

#include "frontend/ops/op_table.h"
#include "lowering/algorithms/algorithm.h"
#include "schedules/spaces/gpu/nest.h"
#include "schedules/spaces/register_tile.h"
#include "schedules/spaces/spaces.h"

// Space gpu_tiles: kernels that fold once (convolution, matmul, pooling, reductions of few elements). Each
// thread folds a tile of results in its registers: `columns` along the innermost dim, `rows` along the one
// where the other operand is shared (channels of a convolution, rows of a matmul). Where channels lie
// innermost and are not mixed (pooling, depthwise convolutions), the columns are a vector.
//   columns, rows   results of a thread: of an open loop no more than it has in any run
//   threads         threads of a block

namespace sylvite {
namespace {

bool is_channels_last(const Kernel& kernel) {
  return kernel.body.type(kernel.body.outputs.front()).layout.channel_block > 0;
}

/// The position of the loop that `rows` is cut from; 0 when there is none.
std::size_t row_loop(const Kernel& kernel, const KernelFacts& facts) {
  const bool over_channels =
      facts.anchor->op == Op::conv && facts.extents.size() > 2 && !is_channels_last(kernel);
  const std::size_t position = over_channels ? facts.extents.size() - 2 : 1;
  return facts.extents.size() > position ? position : 0;
}

std::string refuses_tiles(const Kernel& kernel, const KernelFacts& facts) {
  if (facts.anchor == nullptr || update_stages(facts.anchor->op) != std::vector<std::string>{"_fold"})
    return "the kernel does not fold once";
  const OpInfo& info = op_info(facts.anchor->op);
  if (info.has(OpTrait::scan) || info.has(OpTrait::scatter) || facts.anchor->op == Op::top_k)
    return "the results depend on each other";
  if (kernel.body.outputs.size() != 1) return "the kernel has several outputs";
  for (const Node& node : kernel.body.nodes())
    if (&node != facts.anchor && !update_stages(node.op).empty()) return "the kernel folds twice";
  if (facts.extents.empty() || loop_extents(kernel.body.type(facts.anchor->outputs.front())) != facts.extents)
    return "the output's loops are not the fold's";
  return "";
}

bool is_contraction(const Node& anchor) {
  return anchor.op == Op::conv || anchor.op == Op::matmul;
}

/// Columns are a vector when each is a channel of its own.
bool is_vector(const Kernel& kernel, const KernelFacts& facts, std::int64_t columns) {
  const Node& anchor = *facts.anchor;
  const bool mixes =
      is_contraction(anchor) && (anchor.op == Op::matmul || anchor.attributes.integer("groups") == 1);
  return is_channels_last(kernel) && !mixes && facts.loops[0].is_multiple_of(columns);
}
std::int64_t widest_tile_vector(const Kernel& kernel, const KernelFacts& facts) {
  if (!is_vector(kernel, facts, 1)) return 1;
  const auto size =
      static_cast<std::int64_t>(dtype_size(kernel.body.type(kernel.body.outputs.front()).dtype));
  std::int64_t columns = std::max<std::int64_t>(1, 16 / size);
  while (columns > 1 && !is_vector(kernel, facts, columns)) columns /= 2;
  return columns;
}

struct TileNumbers {
  std::int64_t columns = 1;
  std::int64_t rows = 1;
  std::int64_t threads = gpu_block_threads;
};

struct Tiles {
  const Kernel& kernel;
  KernelFacts facts;
  TileNumbers heuristic;

  [[nodiscard]] std::vector<Range<TileNumbers>> ranges() const;
  [[nodiscard]] Candidate at(const TileNumbers& point) const;
};

std::vector<Range<TileNumbers>> Tiles::ranges() const {
  const std::size_t loop = row_loop(kernel, facts);
  return {{"columns", &TileNumbers::columns, up_to(facts.loops[0].least, {4, 2, 1, 8})},
          {"rows", &TileNumbers::rows,
           loop == 0 ? std::vector<std::int64_t>{1} : up_to(facts.loops[loop].least, {8, 4, 2, 1})},
          {"threads", &TileNumbers::threads, {128, 64, 256}}};
}

TileNumbers first_tile_point(const Kernel& kernel, const KernelFacts& facts) {
  constexpr std::int64_t busy_threads = 64 << 10;
  TileNumbers point{.columns = widest_tile_vector(kernel, facts)};
  if (!is_contraction(*facts.anchor) || point.columns > 1) return point;
  std::int64_t results = 1;
  for (const std::int64_t extent : facts.extents) results *= extent;
  // Large tiles as long as enough threads are left to fill the GPU.
  const auto grow = [&](std::int64_t& number, std::int64_t most, std::int64_t extent) {
    while (number < most && number * 2 <= extent && results > busy_threads) {
      number *= 2;
      results /= 2;
    }
  };
  if (const std::size_t loop = row_loop(kernel, facts); loop != 0)
    grow(point.rows, 8, facts.loops[loop].least);
  grow(point.columns, 4, facts.loops[0].least);
  return point;
}

Candidate Tiles::at(const TileNumbers& point) const {
  const std::size_t row_position = row_loop(kernel, facts);
  const std::string fold = facts.anchor_value + "_fold";
  const Algorithm algorithm = build_algorithm(kernel, device_form);
  ScheduleWriter writer;
  std::vector<std::string> loops;
  loops.reserve(facts.extents.size());
  for (std::size_t d = 0; d < facts.extents.size(); ++d) loops.push_back(fmt::format("d{}", d));
  std::string tile;
  std::string order;
  const char* columns_as = is_vector(kernel, facts, point.columns) ? "vectorize" : "unroll";
  const auto cut = [&](std::size_t position, std::int64_t factor, const char* inner) {
    if (factor < 2) return;
    const std::string outer = loops[position] + "o";
    const char* tail =
        facts.loops[position].is_multiple_of(factor) ? "TailStrategy::RoundUp" : "TailStrategy::ShiftInwards";
    writer.add("{}.split({}, {}, {}, {}, {});", facts.output, loops[position], outer, inner, factor, tail);
    const std::string var = loops[position];
    const char* as = position == 0 ? columns_as : "unroll";
    writer.add("{}.bound_extent({}, {}).{}({});", fold, var, factor, as, var);
    tile += fmt::format(".{}({})", as, var);
    order += var + ", ";
    loops[position] = outer;
  };
  cut(0, point.columns, "column");
  if (row_position != 0) cut(row_position, point.rows, "row");
  std::string unrolled;
  std::string output_order;
  for (const char* inner : {"column", "row"}) {
    const bool is_column = std::string_view(inner) == "column";
    if ((is_column ? point.columns : (row_position != 0 ? point.rows : 1)) < 2) continue;
    output_order += std::string(inner) + ", ";
    unrolled += fmt::format(".{}({})", is_column ? columns_as : "unroll", inner);
  }
  for (const std::string& loop : loops) output_order += loop + ", ";
  writer.add_line(fmt::format("{}.reorder({}){};", facts.output,
                              output_order.substr(0, output_order.size() - 2), unrolled));
  gpu_thread_each(writer, facts.output, loops, point.threads);
  writer.add("{}.compute_at({}, thread);", fold, facts.output);
  const Halide::Func func = algorithm.stages.at(fold);
  for (const Halide::RVar& variable : func.rvars(0)) order += variable.name() + ", ";
  for (std::size_t d = 0; d < facts.extents.size(); ++d) {
    const std::string var = fmt::format("d{}", d);
    if (tile.find("(" + var + ")") == std::string::npos) order += var + ", ";
  }
  writer.add_line(fmt::format("{}.update(0).reorder({}){};", fold, order.substr(0, order.size() - 2), tile));
  return {device_form, writer.take()};
}

Binding bind_tiles(const Kernel& kernel, const Machine& machine) {
  const KernelFacts facts = facts_of(kernel, machine);
  if (std::string refusal = refuses_tiles(kernel, facts); !refusal.empty()) return {refusal};
  return bind_space(Tiles{kernel, facts, first_tile_point(kernel, facts)});
}

}  // namespace

const Space gpu_tiles_space = {"gpu_tiles", bind_tiles, {}, Space::Open::extents};

}  // namespace sylvite
