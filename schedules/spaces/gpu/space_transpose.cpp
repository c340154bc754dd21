#include <algorithm>

#include "base/error.h"
#include "frontend/ops/op_table.h"
#include "lowering/algorithms/problems.h"
#include "schedules/spaces/gpu/nest.h"
#include "schedules/spaces/register_tile.h"
#include "schedules/spaces/spaces.h"

// Space gpu_transpose: pointwise work on one transposed input. A block brings a square tile into shared
// memory along the input's innermost dim, and reads it along the output's, so that both sides move whole
// lines.
//   tile    rows and columns of the square
//   rows    threads on top of each other, each of which takes every `rows`-th line
//   vector  elements of an access on either side

namespace sylvite {
namespace {

/// The transposed input and where its dims are.
struct Transpose {
  std::string input;  ///< a body input
  std::size_t rank = 0;
  std::size_t across = 0;  ///< the output loop that walks the input's innermost dim
  std::size_t source = 0;  ///< the input's storage dim that the output's innermost loop walks
};

Reading<Transpose> refused(const char* reason) {
  return {{}, reason};
}

Reading<Transpose> read_transpose(const Kernel& kernel) {
  const Node* node = nullptr;
  for (const Node& each : kernel.body.nodes()) {
    if (!update_stages(each.op).empty()) return refused("the kernel folds");
    if (each.op == Op::transpose) {
      if (node != nullptr) return refused("there are several transposes");
      node = &each;
    } else if (!has_trait(each.op, OpTrait::pointwise)) {
      return refused("there are other index maps");
    }
  }
  if (node == nullptr || kernel.body.outputs.size() != 1) return refused("nothing is transposed");
  const Value& source = kernel.body.value(node->inputs.front());
  if (source.producer != no_node || source.constant) return refused("what is transposed is computed");
  const TensorType& type = kernel.body.type(node->outputs.front());
  if (type.dims() != kernel.body.type(kernel.body.outputs.front()).dims())
    return refused("the result is broadcast");
  const std::vector<std::int64_t>& perm = node->attributes.integers("perm");
  const auto rank = static_cast<std::size_t>(type.rank());
  const auto walks_last = static_cast<std::size_t>(
      std::find(perm.begin(), perm.end(), static_cast<std::int64_t>(rank) - 1) - perm.begin());
  if (walks_last + 1 >= rank) return refused("the innermost dim stays innermost");
  return {{.input = source.name,
           .rank = rank,
           .across = rank - 1 - walks_last,
           .source = rank - 1 - static_cast<std::size_t>(perm.back())},
          ""};
}

struct TransposeNumbers {
  std::int64_t tile = 32;
  std::int64_t rows = 8;
  std::int64_t vector = 1;
};

struct TransposeTiles {
  KernelFacts facts;
  Transpose transpose;
  std::int64_t shorter;        ///< of the extents that tiles are cut from
  std::int64_t widest_vector;  ///< that divides both
  TransposeNumbers heuristic;

  [[nodiscard]] std::vector<Range<TransposeNumbers>> ranges() const {
    Range<TransposeNumbers> vector{"vector", &TransposeNumbers::vector, {}};
    for (std::int64_t width = 1; width <= widest_vector; width *= 2) vector.values.push_back(width);
    return {{"tile", &TransposeNumbers::tile, up_to(shorter, {32, 64, 128})},
            {"rows", &TransposeNumbers::rows, {8, 4, 16}},
            vector};
  }
  [[nodiscard]] Candidate at(const TransposeNumbers& point) const;
};

Candidate TransposeTiles::at(const TransposeNumbers& point) const {
  const auto [tile, rows, vector] = point;
  const std::string& output = facts.output;
  if (tile * rows / vector > 1024) throw UnsupportedError("a block has at most 1024 threads");
  ScheduleWriter writer;
  const std::string across = fmt::format("d{}", transpose.across);
  // Tails are shifted inwards: a tile then always lies within the input.
  const auto tail = [&](std::size_t d) {
    return facts.extents[d] % tile == 0 ? "TailStrategy::RoundUp" : "TailStrategy::ShiftInwards";
  };
  writer.add("{}.split(d0, x, xi, {}, {}).split({}, y, yi, {}, {});", output, tile, tail(0), across, tile,
             tail(transpose.across));
  writer.add("{}.split(xi, column, lane, {}, TailStrategy::RoundUp);", output, vector);
  writer.add("{}.split(yi, line, row, {}, TailStrategy::RoundUp);", output, rows);
  std::string order = "lane, line, column, row, x, y";
  std::string block = "tile1";
  std::string fuses = fmt::format("{}.fuse(x, y, tile1)", output);
  int names = 1;
  for (std::size_t d = 1; d < transpose.rank; ++d) {
    if (d == transpose.across) continue;
    order += fmt::format(", d{}", d);
    const std::string next = fmt::format("tile{}", ++names);
    fuses += fmt::format(".fuse({}, d{}, {})", block, d, next);
    block = next;
  }
  writer.add("{}.reorder({}).unroll(line);", output, order);
  writer.add_line(fuses + fmt::format(".gpu_blocks({}).gpu_threads(column, row);", block));
  if (vector > 1) writer.add("{}.vectorize(lane);", output);
  const std::string source = transpose.input + "_tile";
  writer.add("Func {} = {}.in();", source, transpose.input);
  // One element more than the tile: columns of the tile then lie in different banks.
  writer.add("{}.compute_at({}, {}).store_in(MemoryType::GPUShared).align_storage(_0, {});", source, output,
             block, tile + (vector > 1 ? vector : 1));
  writer.add("{}.split(_0, column, lane, {}, TailStrategy::RoundUp);", source, vector);
  writer.add("{}.split(_{}, line, row, {}, TailStrategy::RoundUp);", source, transpose.source, rows);
  writer.add("{}.reorder(lane, line, column, row).unroll(line).gpu_threads(column, row);", source);
  if (vector > 1) writer.add("{}.vectorize(lane);", source);
  return {device_form, writer.take()};
}

Binding bind_transpose(const Kernel& kernel, const Machine& machine) {
  const Reading<Transpose> reading = read_transpose(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  const KernelFacts facts = facts_of(kernel, machine);
  const std::int64_t down = facts.extents[0];
  const std::int64_t across = facts.extents[reading.problem.across];
  const std::int64_t shorter = std::min(down, across);
  constexpr std::int64_t smallest_tile = 32;
  if (shorter < smallest_tile) return {"the transposed dims are short"};
  std::int64_t widest = 4;
  while (down % widest != 0 || across % widest != 0) widest /= 2;
  // A warp moves 128 bytes of a line.
  const auto size =
      static_cast<std::int64_t>(dtype_size(kernel.body.type(kernel.body.outputs.front()).dtype));
  const std::int64_t vector = std::min(widest, std::max<std::int64_t>(1, 4 / size));
  const std::int64_t tile = shorter >= smallest_tile * vector ? smallest_tile * vector : smallest_tile;
  return bind_space(
      TransposeTiles{facts, reading.problem, shorter, widest, {.tile = tile, .vector = vector}});
}

}  // namespace

const Space gpu_transpose_space = {"gpu_transpose", bind_transpose};

}  // namespace sylvite
