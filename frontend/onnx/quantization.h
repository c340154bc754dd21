#pragma once
// Steps between real numbers and the integers that stand for them, as the operators share them.

#include "frontend/onnx/import_context.h"

namespace sylvite {

/// A scale or zero point shaped to broadcast against x: one number, one per index of `axis`, or one per block
/// of `block` neighbours along it.
[[nodiscard]] Sym spread(Sym parameter, Sym x, std::int64_t axis, std::int64_t block);
/// A parameter of a convolution's weights: one number, or one per output channel.
[[nodiscard]] Sym per_output(Sym parameter, int rank);

/// round(x / scale) + zero_point, within the range of `to`. `scale` and `zero_point` broadcast; the latter may
/// be absent. Without `saturates` what is too large for a narrow float overflows as that type does.
[[nodiscard]] Sym quantize(Sym x, Sym scale, Sym zero_point, DType to, bool saturates = true);
/// x - zero_point of 8-bit integers, as i16; the latter may be absent.
[[nodiscard]] Sym steps(Sym x, Sym zero_point);
/// (x - zero_point) scale, as f32.
[[nodiscard]] Sym dequantize(Sym x, Sym scale, Sym zero_point);

struct Quantized {
  Sym value, scale, zero_point;
};
/// As u8, in steps of 1/255 of the range of x, which 0 belongs to.
[[nodiscard]] Quantized quantize_by_range(Sym x);

/// QLinearConv with its first input replaced by `input`.
[[nodiscard]] Sym quantized_convolution(ImportContext& c, Sym input);

}  // namespace sylvite
