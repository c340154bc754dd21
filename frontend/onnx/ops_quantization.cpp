// Quantised operators, computed on the real numbers they stand for.

#include <algorithm>

#include "base/error.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/tensor.h"
#include "frontend/onnx/window.h"

namespace sylvite {
namespace {

struct IntegerRange {
  double low, high;
};

IntegerRange range_of(DType dtype) {
  switch (dtype) {
    case DType::i8:
      return {-128, 127};
    case DType::u8:
      return {0, 255};
    case DType::i16:
      return {-32768, 32767};
    case DType::u16:
      return {0, 65535};
    case DType::i4:
      return {-8, 7};
    case DType::u4:
      return {0, 15};
    case DType::i2:
      return {-2, 1};
    case DType::u2:
      return {0, 3};
    default:
      throw UnsupportedError("quantisation to {} is not supported", dtype_name(dtype));
  }
}

/// A scale or zero point shaped to broadcast against x: one number, one per index of `axis`, or one per block
/// of `block` neighbours along it.
Sym spread(Sym parameter, Sym x, std::int64_t axis, std::int64_t block) {
  if (parameter.size() == 1 && block == 0) return reshape(parameter, {});
  const int at = normalize_axis(axis, x.rank());
  if (block == 0) {
    Dims dims(static_cast<std::size_t>(x.rank()), 1);
    dims[static_cast<std::size_t>(at)] = parameter.size();
    return reshape(parameter, dims);
  }
  Dims dims = parameter.dims();
  if (parameter.rank() != x.rank())
    throw ModelError("a blocked parameter has rank {}, expected {}", parameter.rank(), x.rank());
  if (block < 1) throw ModelError("block_size is {}, expected at least 1", block);
  block = std::min(block, x.dim(at));  // neighbours past the end are cut off below
  dims.insert(dims.begin() + at + 1, block);
  Dims joined = parameter.dims();
  joined[static_cast<std::size_t>(at)] *= block;
  const Sym repeated = reshape(broadcast_to(unsqueeze(parameter, {at + 1}), dims), joined);
  return slice(repeated, at, 0, x.dim(at));
}

Sym quantize(Sym x, Sym scale, Sym zero_point, DType to, bool saturates = true) {
  if (is_narrow_float(to)) {
    Sym y = x / scale;
    if (zero_point) y = y + cast(zero_point, y.dtype());
    return cast(saturates ? saturated(y, to) : y, to);
  }
  const IntegerRange range = range_of(to);
  Sym y = apply(Op::round, x / scale);
  if (zero_point) y = y + cast(zero_point, x.dtype());
  return cast(apply(Op::minimum, apply(Op::maximum, y, range.low), range.high), to);
}

Sym dequantize(Sym x, Sym scale, Sym zero_point) {
  Sym y = cast(x, DType::f32);
  if (zero_point) y = y - cast(zero_point, DType::f32);
  return y * cast(scale, DType::f32);
}

void quantize_linear(ImportContext& c) {
  const Sym x = c.input(0);
  const std::int64_t axis = c.integer("axis", 1);
  const std::int64_t block = c.integer("block_size", 0);
  const Sym zero_point = c.optional(2);
  DType to = zero_point ? zero_point.dtype() : DType::u8;
  if (const std::int64_t given = c.integer("output_dtype", 0); !zero_point && given != 0)
    to = dtype_of_onnx(static_cast<int>(given));
  const Sym scale = cast(spread(c.input(1), x, axis, block), DType::f32);
  c.output(quantize(cast(x, DType::f32), scale, zero_point ? spread(zero_point, x, axis, block) : Sym(), to,
                    c.integer("saturate", 1) != 0));
}

void dequantize_linear(ImportContext& c) {
  const Sym x = c.input(0);
  const std::int64_t axis = c.integer("axis", 1);
  const std::int64_t block = c.integer("block_size", 0);
  const Sym zero_point = c.optional(2);
  const DType to = c.has_attribute("output_dtype") && c.integer("output_dtype", 0) != 0
                       ? dtype_of_onnx(static_cast<int>(c.integer("output_dtype", 1)))
                       : c.input(1).dtype();
  const Sym y = dequantize(x, spread(c.input(1), x, axis, block),
                           zero_point ? spread(zero_point, x, axis, block) : Sym());
  c.output(cast(y, to));
}

void dynamic_quantize_linear(ImportContext& c) {
  const Sym x = c.input(0);
  const std::vector<std::int64_t> axes = all_axes(x.rank());
  const Sym low = apply(Op::minimum, reduce(Op::reduce_min, x, axes, false), 0.0);
  const Sym high = apply(Op::maximum, reduce(Op::reduce_max, x, axes, false), 0.0);
  const Sym scale = (high - low) * (1.0 / 255.0);
  const Sym zero = apply(Op::minimum, apply(Op::maximum, apply(Op::round, -low / scale), 0.0), 255.0);
  const Sym zero_point = cast(zero, DType::u8);
  c.output(0, quantize(x, scale, zero_point, DType::u8));
  c.output(1, scale);
  c.output(2, zero_point);
}

/// A zero point per row of a matrix (or one for all), as i32.
Sym row_zero_point(Sym zero_point) {
  const Sym wide = cast(zero_point, DType::i32);
  if (wide.size() == 1) return reshape(wide, {});
  return wide.rank() == 1 ? unsqueeze(wide, {1}) : wide;
}

void matmul_integer(ImportContext& c) {
  Sym a = cast(c.input(0), DType::i32);
  Sym b = cast(c.input(1), DType::i32);
  if (const Sym zero = c.optional(2)) a = a - row_zero_point(zero);
  if (const Sym zero = c.optional(3)) b = b - cast(zero.size() == 1 ? reshape(zero, {}) : zero, DType::i32);
  c.output(matmul(a, b));
}

/// Inputs: a, its scale and zero point; b, likewise; the scale and zero point of the result.
void qlinear_matmul(ImportContext& c) {
  const auto as_rows = [](Sym parameter) {
    if (parameter.size() == 1) return reshape(parameter, {});
    return parameter.rank() == 1 ? unsqueeze(parameter, {1}) : parameter;
  };
  const auto as_columns = [](Sym parameter) {
    return parameter.size() == 1 ? reshape(parameter, {}) : parameter;
  };
  const Sym a = dequantize(c.input(0), as_rows(c.input(1)), as_rows(c.input(2)));
  const Sym b = dequantize(c.input(3), as_columns(c.input(4)), as_columns(c.input(5)));
  const Sym zero_point = as_rows(c.input(7));
  c.output(quantize(matmul(a, b), cast(as_rows(c.input(6)), DType::f32), zero_point, zero_point.dtype()));
}

/// A parameter of the weights: one number, or one per output channel.
Sym per_output(Sym parameter, int rank) {
  if (parameter.size() == 1) return reshape(parameter, {});
  if (rank < 1) throw ModelError("{} numbers for the channels of weights of rank 0", parameter.size());
  Dims dims(static_cast<std::size_t>(rank), 1);
  dims[0] = parameter.size();
  return reshape(parameter, dims);
}

/// In integers: in f32 large sums, and those of Winograd's transforms, would be rounded.
void conv_integer(ImportContext& c) {
  Sym x = cast(c.input(0), DType::i32);
  Sym w = cast(c.input(1), DType::i32);
  if (const Sym zero = c.optional(2)) x = x - cast(reshape(zero, {}), DType::i32);
  if (const Sym zero = c.optional(3)) w = w - cast(per_output(zero, w.rank()), DType::i32);
  c.output(convolve(c, {x, w}));
}

void qlinear_conv(ImportContext& c) {
  const Sym w_scale = c.input(4);
  const Sym x = dequantize(c.input(0), reshape(c.input(1), {}), reshape(c.input(2), {}));
  const int rank = c.input(3).rank();
  const Sym w = dequantize(c.input(3), per_output(w_scale, rank), per_output(c.input(5), rank));
  Sym y = convolve(c, {x, w});
  if (const Sym bias = c.optional(8)) {
    const Sym scaled = cast(bias, DType::f32) *
                       (reshape(c.input(1), {}) * (w_scale.size() == 1 ? reshape(w_scale, {}) : w_scale));
    Dims dims(static_cast<std::size_t>(rank) - 1, 1);
    dims[0] = bias.size();
    y = y + reshape(scaled, dims);
  }
  const Sym zero_point = reshape(c.input(7), {});
  c.output(quantize(y, reshape(c.input(6), {}), zero_point, zero_point.dtype()));
}

const OnnxOp rows[] = {
    {"ConvInteger", 10, conv_integer},
    {"DequantizeLinear", 10, dequantize_linear},
    {"DynamicQuantizeLinear", 11, dynamic_quantize_linear},
    {"MatMulInteger", 10, matmul_integer},
    {"QLinearConv", 10, qlinear_conv},
    {"QLinearMatMul", 10, qlinear_matmul},
    {"QuantizeLinear", 10, quantize_linear},
};

}  // namespace

std::span<const OnnxOp> onnx_quantization_ops() {
  return rows;
}

}  // namespace sylvite
