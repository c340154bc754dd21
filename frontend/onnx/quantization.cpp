#include "frontend/onnx/quantization.h"

#include <algorithm>

#include "base/error.h"
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

/// Are these scales that the core operation takes?
bool are_plain(Sym scale) {
  if (!scale.is_constant() || scale.dtype() != DType::f32) return false;
  const Tensor known = scale.constant();
  return std::ranges::all_of(known.view<float>(), [](float x) { return x >= 0x1p-100F && x <= 0x1p100F; });
}

/// x in steps of 8 bits of a scale that is computed, and not negative. Both are multiplied by a power of two, which changes no
/// quotient, so that the scale is one that the core operation takes: it divides once, not for each element.
Sym quantize_by_computed(Sym x, Sym scale, Sym zero_point) {
  if (x.dtype() != DType::f32) return quantize(x, scale, zero_point, DType::u8);
  GraphBuilder& b = x.builder();
  const Sym is_small = apply(Op::less, scale, 0x1p-60), is_large = apply(Op::greater, scale, 0x1p60);
  const Sym factor =
      where(is_small, b.scalar(DType::f32, 0x1p64), where(is_large, b.scalar(DType::f32, 0x1p-64), 1.0));
  const Sym taken = apply(Op::maximum, scale * factor, 0x1p-100);
  return b.add(Op::round, {x * factor, taken, zero_point}, {{"to", std::string(dtype_name(DType::u8))}});
}

bool is_nothing(Sym zero_point) {
  if (!zero_point) return true;
  if (!zero_point.is_constant()) return false;
  const Tensor known = zero_point.constant();
  for (std::int64_t i = 0; i < known.size(); ++i)
    if (known.as_int64(i) != 0) return false;
  return true;
}

}  // namespace

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

Sym quantize(Sym x, Sym scale, Sym zero_point, DType to, bool saturates) {
  if (is_narrow_float(to)) {
    Sym y = x / scale;
    if (zero_point) y = y + cast(zero_point, y.dtype());
    return cast(saturates ? saturated(y, to) : y, to);
  }
  if (x.dtype() == DType::f32 && dtype_bits(to) >= 8 && dtype_bits(to) <= 16 && are_plain(scale)) {
    const Attributes attributes = {{"to", std::string(dtype_name(to))}};
    if (is_nothing(zero_point)) return x.builder().add(Op::round, {x, scale}, attributes);
    return x.builder().add(Op::round, {x, scale, zero_point}, attributes);
  }
  const IntegerRange range = range_of(to);
  Sym y = apply(Op::round, x / scale);
  if (zero_point) y = y + cast(zero_point, x.dtype());
  return cast(apply(Op::minimum, apply(Op::maximum, y, range.low), range.high), to);
}

Sym steps(Sym x, Sym zero_point) {
  const Sym y = cast(x, DType::i16);
  return zero_point ? y - cast(zero_point, DType::i16) : y;
}

Sym dequantize(Sym x, Sym scale, Sym zero_point) {
  Sym y = cast(x, DType::f32);
  if (zero_point) y = y - cast(zero_point, DType::f32);
  return y * cast(scale, DType::f32);
}

Sym per_output(Sym parameter, int rank) {
  if (parameter.size() == 1) return reshape(parameter, {});
  if (rank < 1) throw ModelError("{} numbers for the channels of weights of rank 0", parameter.size());
  Dims dims(static_cast<std::size_t>(rank), 1);
  dims[0] = parameter.size();
  return reshape(parameter, dims);
}

Quantized quantize_by_range(Sym x) {
  const std::vector<std::int64_t> axes = all_axes(x.rank());
  const Sym low = apply(Op::minimum, reduce(Op::reduce_min, x, axes, false), 0.0);
  const Sym high = apply(Op::maximum, reduce(Op::reduce_max, x, axes, false), 0.0);
  const Sym scale = (high - low) * (1.0 / 255.0);
  const Sym zero = apply(Op::minimum, apply(Op::maximum, apply(Op::round, -low / scale), 0.0), 255.0);
  const Sym zero_point = cast(zero, DType::u8);
  return {quantize_by_computed(x, scale, zero_point), scale, zero_point};
}

Sym quantized_convolution(ImportContext& c, Sym input) {
  const Sym w_scale = c.input(4);
  const Sym x = dequantize(input, reshape(c.input(1), {}), reshape(c.input(2), {}));
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
  return quantize(y, reshape(c.input(6), {}), zero_point, zero_point.dtype());
}

}  // namespace sylvite
