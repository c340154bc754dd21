// MatMulNBits of com.microsoft: weights of a few bits, in blocks with a scale each.

#include "base/error.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/refuse.h"
#include "frontend/ops/infer.h"

namespace sylvite {
namespace {

constexpr std::string_view domain = "com.microsoft";

/// How W [columns, depth] is packed: along its rows, block by block, the first number in the lowest bits.
struct Packing {
  std::int64_t bits = 4, columns = 0, depth = 0, block = 0;

  [[nodiscard]] std::int64_t blocks() const { return (depth + block - 1) / block; }
  [[nodiscard]] std::int64_t bytes(std::int64_t numbers) const { return (numbers * bits + 7) / 8; }
};

Packing read_packing(ImportContext& c) {
  Packing p;
  p.bits = c.integer("bits", 4);
  p.columns = c.required_integer("N");
  p.depth = c.required_integer("K");
  p.block = c.required_integer("block_size");
  if (p.bits != 2 && p.bits != 4 && p.bits != 8)
    throw UnsupportedError("attribute 'bits' is {}; 2, 4 and 8 are supported", p.bits);
  if (p.block < 16 || p.block > 65'536 || (p.block & (p.block - 1)) != 0)
    throw ModelError("block_size is {}, expected a power of two from 16 to 65536", p.block);
  if (p.columns < 1 || p.depth < 1 || p.columns > extent_limit || p.depth > extent_limit)
    throw ModelError("K is {} and N is {}, expected at least 1", p.depth, p.columns);
  return p;
}

/// As i32, in the graph even where x is a constant: evaluated here, weights would take eight times the memory.
Sym widened(ImportContext& c, Sym x) {
  if (c.is_running()) return cast(x, DType::i32);
  GraphBuilder& b = c.builder();
  return {b, b.graph().add(Op::cast, {x.id()}, {{"to", std::string(dtype_name(DType::i32))}})};
}

/// The numbers that bytes of i32 [blocks, bytes, 1, N] hold, [blocks, bytes, numbers of a byte, N].
Sym unpacked(Sym bytes, std::int64_t bits) {
  GraphBuilder& b = bytes.builder();
  if (bits == 8) return bytes;
  const Sym shifts = b.iota(DType::i32, {8 / bits, 1}, 0) * static_cast<double>(bits);
  return apply(Op::bitwise_and, apply(Op::shift_right, bytes, shifts),
               b.scalar(DType::i32, static_cast<double>((1 << bits) - 1)));
}

/// [N, blocks] as one number per block of every column, to go with unpacked numbers.
Sym per_block(Sym x, const Packing& p) {
  return reshape(swap_axes(reshape(x, {p.columns, p.blocks()}), 0, 1), {p.blocks(), 1, 1, p.columns});
}

/// Floats as they are, or packed like the weights.
Sym zero_points(ImportContext& c, const Packing& p, DType dtype) {
  const Sym given = c.optional(3);
  if (!given) return c.builder().scalar(dtype, static_cast<double>(std::int64_t{1} << (p.bits - 1)));
  if (given.dtype() != DType::u8) return per_block(cast(given, dtype), p);
  const std::int64_t bytes = p.bytes(p.blocks());
  const Sym columns = swap_axes(reshape(cast(given, DType::i32), {p.columns, bytes}), 0, 1);
  const Sym numbers = unpacked(unsqueeze(columns, {0, 2}), p.bits);
  const Sym rows = slice(reshape(numbers, {bytes * 8 / p.bits, p.columns}), 0, 0, p.blocks());
  return reshape(cast(rows, dtype), {p.blocks(), 1, 1, p.columns});
}

/// a [..., depth] by the weights [blocks, bytes, numbers of a byte, N]. One row multiplies them where they are unpacked, and
/// they are never stored as floats.
Sym product(Sym a, Sym weight, const Packing& p) {
  const std::int64_t depth = p.blocks() * p.block;
  const Dims dims = weight.dims();
  Dims result = a.dims();
  result.back() = p.columns;
  if (a.size() == p.depth) {
    const Sym row = pad(reshape(a, {p.depth}), {0}, {depth - p.depth});
    const Sym terms = weight * reshape(row, {dims[0], dims[1], dims[2], 1});
    return reshape(reduce(Op::reduce_sum, terms, {0, 1, 2}, false), result);
  }
  return matmul(a, slice(reshape(weight, {depth, p.columns}), 0, 0, p.depth));
}

void matmul_bits(ImportContext& c) {
  refuse_input(c, 4, "g_idx");
  refuse_attributes(c, {"weight_prepacked"});
  (void)c.has_attribute("accuracy_level");  // the least that is asked for; we compute in the type of A
  const Packing p = read_packing(c);
  const Sym a = c.input(0);
  if (a.rank() < 1 || a.dim(-1) != p.depth)
    throw ModelError("A has {} columns, expected K, which is {}", a.rank() < 1 ? 0 : a.dim(-1), p.depth);
  const Dims packed{p.columns, p.blocks(), p.bytes(p.block)};
  if (c.input(1).dtype() != DType::u8)
    throw UnsupportedError("B is {}, supported is {}", dtype_name(c.input(1).dtype()), dtype_name(DType::u8));
  if (c.input(1).size() != checked_product(packed, "B"))
    throw ModelError("B has {} bytes, expected {}x{}x{}", c.input(1).size(), packed[0], packed[1], packed[2]);
  // Columns of the result lie side by side, as kernels want them.
  const Sym bytes = unsqueeze(transpose(reshape(c.input(1), packed), {1, 2, 0}), {2});
  const Sym numbers = cast(unpacked(widened(c, bytes), p.bits), a.dtype());
  const Sym weight = (numbers - zero_points(c, p, a.dtype())) * per_block(cast(c.input(2), a.dtype()), p);
  const Sym y = product(a, weight, p);
  const Sym bias = c.optional(5);
  c.output(bias ? y + bias : y);
}

const OnnxOp rows[] = {
    {"MatMulNBits", 1, matmul_bits, domain},
};

}  // namespace

std::span<const OnnxOp> onnx_contrib_block_ops() {
  return rows;
}

}  // namespace sylvite
