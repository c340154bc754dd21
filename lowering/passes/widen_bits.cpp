// Products by weights of a few bits, for devices that have no kernels for them:
//
//   before: y = matmul_bits(a, b, scales, zeros)
//   after:  y = matmul(a, (numbers of b - zeros) scales)
//
// A few rows instead multiply the numbers as they are unpacked, which are never stored: within a block there are only
// products and sums; its zero and its scale are for their sum.

#include "frontend/graph/graph_builder.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

constexpr std::int64_t few_rows = 4;  ///< to widen weights anew for each takes less time than to store them

struct Blocks {
  std::int64_t bits = 4, block = 32, count = 0, columns = 0, depth = 0;
};

/// The numbers of b [n, blocks, bytes], as f32 [blocks, bytes, numbers of a byte, n]. A builder would evaluate a constant:
/// the weights would take eight times the memory.
Sym unpacked(GraphBuilder& b, ValueId weight, const Blocks& blocks) {
  Graph& graph = b.graph();
  const ValueId wide = add_cast(graph, weight, DType::i32);
  Sym bytes = unsqueeze(transpose(Sym(b, wide), {1, 2, 0}), {2});
  if (blocks.bits < 8) {
    const Sym shifts = b.iota(DType::i32, {8 / blocks.bits, 1}, 0) * static_cast<double>(blocks.bits);
    bytes = apply(Op::bitwise_and, apply(Op::shift_right, bytes, shifts),
                  b.scalar(DType::i32, static_cast<double>((1 << blocks.bits) - 1)));
  }
  return cast(bytes, DType::f32);
}

/// [n, blocks] as one number per block of every column, to go with unpacked numbers.
Sym per_block(Sym x, const Blocks& blocks) {
  return reshape(swap_axes(cast(x, DType::f32), 0, 1), {blocks.count, 1, 1, blocks.columns});
}

/// What the steps of each block of the rows of a [rows, depth] stand for.
Sym rounded_to_steps(Sym a, const Blocks& blocks) {
  constexpr double levels = 127;
  const Dims dims = a.dims();
  const std::int64_t padding = blocks.count * blocks.block - blocks.depth;
  const Sym x = reshape(pad(a, {0, 0}, {0, padding}), {dims[0], blocks.count, blocks.block});
  const Sym peak = reduce(Op::reduce_max, apply(Op::abs, x), {2});
  const Sym steps = apply(Op::round, x * where(apply(Op::greater, peak, 0x1p-100), levels / peak, 0.0));
  return slice(reshape(steps * (peak / levels), {dims[0], dims[1] + padding}), 1, 0, blocks.depth);
}

Sym times_few(Sym a, Sym numbers, Sym zeros, Sym scales, const Blocks& blocks) {
  const Dims d = numbers.dims();
  const Sym whole = pad(a, {0, 0}, {0, blocks.count * blocks.block - blocks.depth});
  const Sym x = reshape(whole, {a.dim(0), d[0], d[1], d[2], 1});
  const Sym products = reduce(Op::reduce_sum, numbers * x, {2, 3});
  const Sym sums = reduce(Op::reduce_sum, x, {2, 3});
  return reduce(Op::reduce_sum, (products - zeros * sums) * scales, {1, 2, 3}, false);
}

ValueId widened_product(Graph& graph, const Node& node, const std::vector<ValueId>& inputs) {
  GraphBuilder b(graph);
  const Sym given(b, inputs[0]);
  const Dims weight = graph.type(inputs[1]).dims();
  const Blocks blocks{node.attributes.integer("bits"), node.attributes.integer("block"), weight[1], weight[0],
                      given.dim(-1)};
  const std::int64_t rows = given.size() / blocks.depth;
  Sym a = reshape(given, {rows, blocks.depth});
  if (node.op == Op::quantized_matmul_bits)
    a = cast(rounded_to_steps(cast(a, DType::f32), blocks), given.dtype());
  const Sym numbers = unpacked(b, inputs[1], blocks);
  const bool has_zeros = inputs.size() > 3 && inputs[3] != no_value;
  const Sym zeros = has_zeros
                        ? per_block(Sym(b, inputs[3]), blocks)
                        : b.scalar(DType::f32, static_cast<double>(std::int64_t{1} << (blocks.bits - 1)));
  const Sym scales = per_block(Sym(b, inputs[2]), blocks);
  Sym y;
  if (rows <= few_rows) {
    y = cast(times_few(cast(a, DType::f32), numbers, zeros, scales, blocks), given.dtype());
  } else {
    const Sym wide = reshape((numbers - zeros) * scales, {blocks.count * blocks.block, blocks.columns});
    y = matmul(a, cast(slice(wide, 0, 0, blocks.depth), given.dtype()));
  }
  Dims dims = given.dims();
  dims.back() = blocks.columns;
  return reshape(y, dims).id();
}

}  // namespace

Graph widen_bits(const Graph& graph) {
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    if (!multiplies_bits(node.op) || graph.type(node.outputs[0]).element_count() == 0) return false;
    rewriter.set(node.outputs[0], widened_product(rewriter.graph(), node, rewriter.mapped(node.inputs)));
    return true;
  });
}

}  // namespace sylvite
