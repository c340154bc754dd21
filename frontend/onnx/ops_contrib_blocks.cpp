// Weights of a few bits in blocks with a scale each, of com.microsoft: products by them, and rows of tables.

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/packed_numbers.h"
#include "frontend/onnx/refuse.h"
#include "frontend/ops/infer.h"

namespace sylvite {
namespace {

/// How W [columns, depth] is packed: along its rows, block by block, the first number in the lowest bits.
struct Packing {
  std::int64_t bits = 4, columns = 0, depth = 0, block = 0;

  [[nodiscard]] std::int64_t blocks() const { return ceil_div(depth, block); }
  [[nodiscard]] std::int64_t bytes(std::int64_t numbers) const { return (numbers * bits + 7) / 8; }
};

void check_blocks(std::int64_t bits, std::int64_t block) {
  if (bits != 2 && bits != 4 && bits != 8)
    throw UnsupportedError("attribute 'bits' is {}; 2, 4 and 8 are supported", bits);
  if (block < 16 || block > 65'536 || (block & (block - 1)) != 0)
    throw ModelError("block_size is {}, expected a power of two from 16 to 65536", block);
}

Packing read_packing(ImportContext& c) {
  Packing p;
  p.bits = c.integer("bits", 4);
  p.columns = c.required_integer("N");
  p.depth = c.required_integer("K");
  p.block = c.required_integer("block_size");
  check_blocks(p.bits, p.block);
  if (p.columns < 1 || p.depth < 1 || p.columns > extent_limit || p.depth > extent_limit)
    throw ModelError("K is {} and N is {}, expected at least 1", p.depth, p.columns);
  return p;
}

/// [N, blocks]: floats as they are, or unpacked bytes; absent where they are the usual ones.
Sym zero_points(ImportContext& c, const Packing& p) {
  const Sym given = c.optional(3);
  if (!given) return {};
  if (given.dtype() != DType::u8) return reshape(given, {p.columns, p.blocks()});
  const Sym numbers = unpacked_rows(reshape(given, {p.columns, p.bytes(p.blocks())}), p.bits);
  return cast(slice(numbers, 1, 0, p.blocks()), DType::u8);
}

void matmul_bits(ImportContext& c) {
  refuse_input(c, 4, "g_idx");
  refuse_attributes(c, {"weight_prepacked"});
  constexpr std::int64_t steps_of_8_bits = 4;
  const bool is_quantized = c.integer("accuracy_level", 0) == steps_of_8_bits;  // else A stays as it is
  const Packing p = read_packing(c);
  const Sym a = c.input(0);
  if (a.rank() < 1 || a.dim(-1) != p.depth)
    throw ModelError("A has {} columns, expected K, which is {}", a.rank() < 1 ? 0 : a.dim(-1), p.depth);
  const Dims packed{p.columns, p.blocks(), p.bytes(p.block)};
  if (c.input(1).dtype() != DType::u8)
    throw UnsupportedError("B is {}, supported is {}", dtype_name(c.input(1).dtype()), dtype_name(DType::u8));
  if (c.input(1).size() != checked_product(packed, "B"))
    throw ModelError("B has {} bytes, expected {}x{}x{}", c.input(1).size(), packed[0], packed[1], packed[2]);
  std::vector<Sym> inputs = {a.rank() > 1 ? a : unsqueeze(a, {0}), reshape(c.input(1), packed),
                             reshape(c.input(2), {p.columns, p.blocks()})};
  if (const Sym zeros = zero_points(c, p)) inputs.push_back(zeros);
  Sym y = c.builder().add(is_quantized ? Op::quantized_matmul_bits : Op::matmul_bits, inputs,
                          {{"bits", p.bits}, {"block", p.block}});
  if (a.rank() == 1) y = reshape(y, {p.columns});
  const Sym bias = c.optional(5);
  c.output(bias ? y + bias : y);
}

/// The numbers that codes of 4 bits stand for, as bitsandbytes has them: floats of 4 bits, and those of equal shares of a
/// normal distribution.
constexpr float four_bit_floats[] = {
    0.0F,  5.208333333e-3F,  0.66666667F,  1.0F,  0.33333333F,  0.5F,  0.16666667F,  0.25F,
    -0.0F, -5.208333333e-3F, -0.66666667F, -1.0F, -0.33333333F, -0.5F, -0.16666667F, -0.25F};
constexpr float normal_shares[] = {
    -1.0F,       -0.69619280F, -0.52507305F, -0.39491749F, -0.28444138F, -0.18477343F, -0.09105004F, 0.0F,
    0.07958030F, 0.16093020F,  0.24611230F,  0.33791524F,  0.44070983F,  0.56261700F,  0.72295684F,  1.0F};

/// W [columns, depth] of codes, the first in the higher bits, with a scale for each block of all of them.
Tensor decoded(const Tensor& codes, const Tensor& scales, DType dtype, const Packing& p, const float* table) {
  Tensor w(dtype, {p.columns, p.depth});
  for (std::int64_t i = 0; i < w.size(); ++i) {
    const std::int64_t byte = codes.as_int64(i / 2);
    const auto code = static_cast<std::size_t>((i % 2 == 0 ? byte >> 4 : byte) & 15);
    w.set_double(i, static_cast<double>(table[code]) * scales.as_double(i / p.block));
  }
  return w;
}

/// Weights by bitsandbytes become floats here: their codes are no multiples of a step.
void matmul_codes(ImportContext& c) {
  if (c.integer("training_mode", 0) != 0)
    throw UnsupportedError("attribute 'training_mode' is supported as 0 only");
  if (c.integer("transB", 1) != 1) throw UnsupportedError("attribute 'transB' is supported as 1 only");
  Packing p;
  p.columns = c.required_integer("N");
  p.depth = c.required_integer("K");
  p.block = c.required_integer("block_size");
  const std::int64_t kind = c.required_integer("quant_type");
  if (kind != 0 && kind != 1) throw ModelError("quant_type is {}, expected 0 or 1", kind);
  check_blocks(p.bits, p.block);
  const Sym a = c.input(0);
  if (p.columns < 1 || a.rank() < 1 || a.dim(-1) != p.depth)
    throw ModelError("A has {} columns, expected K, which is {}", a.rank() < 1 ? 0 : a.dim(-1), p.depth);
  const std::int64_t count = checked_product({p.columns, p.depth}, "B");
  const Tensor codes = c.constant(1);
  const Tensor scales = c.constant(2);
  if (codes.size() != ceil_div(count, 2) || scales.size() != ceil_div(count, p.block))
    throw ModelError("B has {} bytes and {} scales, expected {} and {}", codes.size(), scales.size(),
                     ceil_div(count, 2), ceil_div(count, p.block));
  const Sym w =
      c.builder().constant(decoded(codes, scales, a.dtype(), p, kind == 0 ? four_bit_floats : normal_shares));
  c.output(matmul(a, transpose(w, {1, 0})));
}

/// Rows of a table whose elements are packed, or of a type of their own. Rows beyond it are 0.
void gather_blocks(ImportContext& c) {
  const Sym data = c.input(0);
  const Sym scales = c.input(2);
  const bool is_packed = data.dtype() == DType::u8;
  if (!is_packed && data.dtype() != DType::u4 && data.dtype() != DType::i4)
    throw UnsupportedError("a table of {}; u8, u4 and i4 are supported", dtype_name(data.dtype()));
  if (data.rank() != 2 || scales.rank() != 2)
    throw UnsupportedError("a table of rank {}; 2 is supported", data.rank());
  if (normalize_axis(c.integer("gather_axis", 0), 2) != 0)
    throw UnsupportedError("attribute 'gather_axis' is supported as 0 only");
  if (normalize_axis(c.integer("quantize_axis", 1), 2) != 1)
    throw UnsupportedError("attribute 'quantize_axis' is supported as the last axis only");
  const std::int64_t bits = c.integer("bits", 4);
  const std::int64_t block = c.integer("block_size", 128);
  check_blocks(bits, block);
  const Sym index = c.input(1);
  const auto rows_of = [&](Sym table, bool unpacks) {
    const Sym rows = gather(table, index, 0);
    return unpacks ? unpacked_rows(rows, bits) : rows;
  };
  const Sym numbers = rows_of(data, is_packed);
  const std::int64_t width = numbers.dim(-1);
  const std::int64_t blocks = ceil_div(width, block);
  const auto spread = [&](Sym x) {
    if (x.dim(-1) < blocks) throw ModelError("{} scales or zero points for {} blocks", x.dim(-1), blocks);
    x = unsqueeze(slice(x, x.rank() - 1, 0, blocks), {-1});
    Dims dims = x.dims();
    dims.back() = block;
    Dims joined(dims.begin(), dims.end() - 1);
    joined.back() *= block;
    return slice(reshape(broadcast_to(x, dims), joined), x.rank() - 2, 0, width);
  };
  const DType dtype = scales.dtype();
  const Sym given = c.optional(3);
  Sym value = cast(numbers, dtype);
  if (given)
    value = value - spread(cast(rows_of(given, is_packed), dtype));
  else if (is_packed)
    value = value - static_cast<double>(std::int64_t{1} << (bits - 1));
  const auto count = static_cast<double>(data.dim(0));
  const Sym exists =
      apply(Op::logical_and, apply(Op::less, index, count), apply(Op::greater_equal, index, -count));
  c.output(where(unsqueeze(exists, {-1}), value * spread(rows_of(scales, false)), 0.0));
}

const OnnxOp contrib_blocks_rows[] = {
    {"GatherBlockQuantized", 1, gather_blocks, microsoft},
    {"MatMulBnb4", 1, matmul_codes, microsoft},
    {"MatMulNBits", 1, matmul_bits, microsoft},
};

}  // namespace

std::span<const OnnxOp> onnx_contrib_block_ops() {
  return contrib_blocks_rows;
}

}  // namespace sylvite
