// Convolutions and their transposes.

#include <algorithm>

#include "base/error.h"
#include "frontend/build/convolution.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/window.h"

namespace sylvite {
namespace {

void conv_op(ImportContext& c) {
  const Sym x = c.input(0);
  std::vector<Sym> inputs{x, c.input(1)};
  if (const Sym bias = c.optional(2)) inputs.push_back(bias);
  c.output(convolve(c, inputs));
}

/// How much the full result is cut at both ends: `pads`, which output_shape overrides.
TransposedWindow read_transposed(ImportContext& c, const Dims& spatial, const Dims& kernel,
                                 const Dims& pads) {
  const std::size_t rank = kernel.size();
  TransposedWindow w;
  w.strides = axis_attribute(c, "strides", rank, 1, 1);
  w.dilations = axis_attribute(c, "dilations", rank, 1, 1);
  w.output_padding = axis_attribute(c, "output_padding", rank, 0, 0);
  const std::string auto_pad = c.string("auto_pad", "NOTSET");
  const bool is_same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  Dims wanted = c.integers("output_shape");
  if (wanted.size() > rank) wanted.erase(wanted.begin(), wanted.end() - static_cast<std::ptrdiff_t>(rank));
  if (!wanted.empty()) {
    if (wanted.size() != rank)
      throw ModelError("output_shape has {} values, expected {}", wanted.size(), rank);
    check_extents("output_shape", wanted, 0);
  }
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t full =
        (spatial[i] - 1) * w.strides[i] + w.output_padding[i] + (kernel[i] - 1) * w.dilations[i] + 1;
    std::int64_t begin = pads[i];
    std::int64_t end = pads[i + rank];
    if (auto_pad == "VALID") begin = end = 0;
    if (!wanted.empty() || is_same) {
      const std::int64_t target = !wanted.empty() ? wanted[i] : spatial[i] * w.strides[i];
      const std::int64_t total = std::max<std::int64_t>(full - target, 0);
      if (!wanted.empty()) w.output_padding[i] += std::max<std::int64_t>(target - full, 0);
      begin = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      end = total - begin;
    }
    w.begin.push_back(begin);
    w.end.push_back(end);
  }
  return w;
}

/// A bias is input `bias`.
template <typename Pads>
void conv_transpose(ImportContext& c, int bias, const Pads& pads_of) {
  const Sym x = c.input(0);
  const Sym w = c.input(1);
  const std::int64_t groups = c.integer("group", 1);
  const Dims kernel = spatial_dims(w);
  const Dims spatial = spatial_dims(x);
  if (kernel.size() != spatial.size())
    throw ModelError("the weights have {} spatial axes, the input {}", kernel.size(), spatial.size());
  check_kernel_shape(c, kernel);
  const TransposedWindow window = read_transposed(c, spatial, kernel, pads_of(kernel.size()));
  c.output(transposed_conv(x, w, c.optional(bias), window, groups));
}

void conv_transpose_op(ImportContext& c) {
  conv_transpose(c, 2, [&](std::size_t rank) { return axis_attribute(c, "pads", 2 * rank, 0, 0); });
}

/// Of com.microsoft: pads are a value.
void conv_transpose_by_pads(ImportContext& c) {
  conv_transpose(c, 3, [&](std::size_t rank) {
    if (!c.has_input(2)) return Dims(2 * rank, 0);
    Dims pads = c.constant_integers(2);
    if (pads.size() != 2 * rank) throw ModelError("pads has {} values, expected {}", pads.size(), 2 * rank);
    check_extents("pads", pads, 0);
    return pads;
  });
}

const OnnxOp convolution_rows[] = {
    {"Conv", 1, conv_op},
    {"ConvTranspose", 1, conv_transpose_op},
    {"ConvTransposeWithDynamicPads", 1, conv_transpose_by_pads, "com.microsoft"},
};

}  // namespace

std::span<const OnnxOp> onnx_convolution_ops() {
  return convolution_rows;
}

}  // namespace sylvite
