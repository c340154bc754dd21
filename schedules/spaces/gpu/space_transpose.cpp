#include <algorithm>

#include "base/error.h"
#include "frontend/ops/op_table.h"
#include "schedules/spaces/gpu/nest.h"
#include "schedules/spaces/register_tile.h"

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
  std::string refusal;
};

Transpose refused(const char* reason) {
  Transpose none;
  none.refusal = reason;
  return none;
}

Transpose read_transpose(const Kernel& kernel) {
  Transpose found;
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
  found.input = source.name;
  found.rank = rank;
  found.across = rank - 1 - walks_last;
  found.source = rank - 1 - static_cast<std::size_t>(perm.back());
  return found;
}

std::string refuses(const Kernel& kernel, const Machine& machine) {
  constexpr std::int64_t least = 32;  // the smallest tile
  const Transpose transpose = read_transpose(kernel);
  if (!transpose.refusal.empty()) return transpose.refusal;
  const Dims extents = facts_of(kernel, machine).extents;
  if (extents[0] < least || extents[transpose.across] < least) return "the transposed dims are short";
  return "";
}

std::int64_t widest_vector(const Kernel& kernel, const Machine& machine) {
  const Transpose transpose = read_transpose(kernel);
  const Dims extents = facts_of(kernel, machine).extents;
  std::int64_t vector = 4;
  while (extents[0] % vector != 0 || extents[transpose.across] % vector != 0) vector /= 2;
  return vector;
}

std::vector<Parameter> parameters(const Kernel& kernel, const Machine& machine) {
  Parameter vector{"vector", {}};
  for (std::int64_t width = 1; width <= widest_vector(kernel, machine); width *= 2)
    vector.values.push_back(width);
  const Dims extents = facts_of(kernel, machine).extents;
  const std::int64_t shorter = std::min(extents[0], extents[read_transpose(kernel).across]);
  return {{"tile", up_to(shorter, {32, 64, 128})}, {"rows", {8, 4, 16}}, vector};
}

Point heuristic(const Kernel& kernel, const Machine& machine) {
  const auto size =
      static_cast<std::int64_t>(dtype_size(kernel.body.type(kernel.body.outputs.front()).dtype));
  // A warp moves 128 bytes of a line.
  const std::int64_t vector = std::min(widest_vector(kernel, machine), std::max<std::int64_t>(1, 4 / size));
  const Dims extents = facts_of(kernel, machine).extents;
  const std::int64_t shorter = std::min(extents[0], extents[read_transpose(kernel).across]);
  return {{"tile", shorter >= 32 * vector ? 32 * vector : 32}, {"rows", 8}, {"vector", vector}};
}

Candidate at(const Kernel& kernel, const Machine& machine, const Point& point) {
  const KernelFacts facts = facts_of(kernel, machine);
  const Transpose transpose = read_transpose(kernel);
  const std::string& output = facts.output;
  const std::int64_t tile = point.at("tile");
  const std::int64_t vector = point.at("vector");
  const std::int64_t rows = point.at("rows");
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

}  // namespace

const Space gpu_transpose_space = {"gpu_transpose", refuses, parameters, heuristic, at, nullptr};

}  // namespace sylvite
