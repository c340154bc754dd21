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

/// Bytes of [..., bytes] as the numbers they hold, i32 of [..., bytes * 8 / bits].
Sym unpacked(Sym bytes, std::int64_t bits) {
  if (bits == 8) return bytes;
  GraphBuilder& b = bytes.builder();
  const std::int64_t count = 8 / bits;
  Dims dims = bytes.dims();
  const Sym shifts = b.iota(DType::i32, {count}, 0) * static_cast<double>(bits);
  const Sym mask = b.scalar(DType::i32, static_cast<double>((1 << bits) - 1));
  const Sym numbers =
      apply(Op::bitwise_and, apply(Op::shift_right, unsqueeze(bytes, {bytes.rank()}), shifts), mask);
  dims.back() *= count;
  return reshape(numbers, dims);
}

/// One per block as [N, blocks, 1]: floats as they are, or packed like the weights.
Sym zero_points(ImportContext& c, const Packing& p, DType dtype) {
  const Sym given = c.optional(3);
  if (!given) return c.builder().scalar(dtype, static_cast<double>(std::int64_t{1} << (p.bits - 1)));
  if (given.dtype() != DType::u8) return reshape(cast(given, dtype), {p.columns, p.blocks(), 1});
  const Sym bytes = reshape(cast(given, DType::i32), {p.columns, p.bytes(p.blocks())});
  return unsqueeze(cast(slice(unpacked(bytes, p.bits), 1, 0, p.blocks()), dtype), {2});
}

void matmul_bits(ImportContext& c) {
  refuse_input(c, 4, "g_idx");
  refuse_attributes(c, {"weight_prepacked"});
  (void)c.has_attribute("accuracy_level");  // the least that is asked for; we compute in the type of A
  const Packing p = read_packing(c);
  const Sym a = c.input(0);
  const Dims packed{p.columns, p.blocks(), p.bytes(p.block)};
  if (c.input(1).dtype() != DType::u8)
    throw UnsupportedError("B is {}, supported is {}", dtype_name(c.input(1).dtype()), dtype_name(DType::u8));
  if (c.input(1).size() != checked_product(packed, "B"))
    throw ModelError("B has {} bytes, expected {}x{}x{}", c.input(1).size(), packed[0], packed[1], packed[2]);
  const Sym numbers = cast(unpacked(widened(c, reshape(c.input(1), packed)), p.bits), a.dtype());
  const Sym scales = reshape(cast(c.input(2), a.dtype()), {p.columns, p.blocks(), 1});
  Sym weight = (numbers - zero_points(c, p, a.dtype())) * scales;
  weight = slice(reshape(weight, {p.columns, p.blocks() * p.block}), 1, 0, p.depth);
  Sym y = matmul(a, swap_axes(weight, 0, 1));
  if (const Sym bias = c.optional(5)) y = y + bias;
  c.output(y);
}

const OnnxOp rows[] = {
    {"MatMulNBits", 1, matmul_bits, domain},
};

}  // namespace

std::span<const OnnxOp> onnx_contrib_block_ops() {
  return rows;
}

}  // namespace sylvite
