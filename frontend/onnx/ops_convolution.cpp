// Convolutions and their transposes.

#include <algorithm>

#include "base/error.h"
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

struct TransposedWindow {
  Dims strides, dilations, output_padding, begin, end;
};

/// How much the full result is cut at both ends; output_shape overrides pads.
TransposedWindow read_transposed(ImportContext& c, const Dims& spatial, const Dims& kernel) {
  const std::size_t rank = kernel.size();
  TransposedWindow w;
  w.strides = axis_attribute(c, "strides", rank, 1, 1);
  w.dilations = axis_attribute(c, "dilations", rank, 1, 1);
  w.output_padding = axis_attribute(c, "output_padding", rank, 0, 0);
  const Dims pads = axis_attribute(c, "pads", 2 * rank, 0, 0);
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

/// [C, M/g, k...] -> [M, C/g, k...], flipped in space: the weights of the equivalent convolution.
Sym transposed_weights(Sym w, std::int64_t groups) {
  const Dims dims = w.dims();
  Dims split{groups, dims[0] / groups, dims[1]};
  Dims joined{groups * dims[1], dims[0] / groups};
  std::vector<std::int64_t> perm{0, 2, 1};
  for (std::size_t i = 2; i < dims.size(); ++i) {
    split.push_back(dims[i]);
    joined.push_back(dims[i]);
    perm.push_back(static_cast<std::int64_t>(i) + 1);
    w = flip(w, static_cast<int>(i));
  }
  return reshape(transpose(reshape(w, split), perm), joined);
}

/// A convolution over the input with stride-1 zeros between neighbours, borders widened by the window.
void conv_transpose(ImportContext& c) {
  Sym x = c.input(0);
  const Sym w = c.input(1);
  const std::int64_t groups = c.integer("group", 1);
  const Dims kernel = spatial_dims(w);
  const Dims spatial = spatial_dims(x);
  if (kernel.size() != spatial.size())
    throw ModelError("the weights have {} spatial axes, the input {}", kernel.size(), spatial.size());
  if (groups < 1 || w.dim(0) % groups != 0)
    throw ModelError("{} groups do not divide {} channels", groups, w.dim(0));
  check_kernel_shape(c, kernel);
  const TransposedWindow window = read_transposed(c, spatial, kernel);
  Dims low(2, 0);
  Dims high(2, 0);
  Dims interior(2, 0);
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const std::int64_t reach = (kernel[i] - 1) * window.dilations[i];
    low.push_back(reach - window.begin[i]);
    high.push_back(reach - window.end[i] + window.output_padding[i]);
    interior.push_back(window.strides[i] - 1);
  }
  const auto positive = [](Dims dims) {
    for (std::int64_t& d : dims) d = std::max<std::int64_t>(d, 0);
    return dims;
  };
  x = pad(x, positive(low), positive(high), 0, interior);
  for (int axis = 2; axis < x.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    x = slice(x, axis, std::max<std::int64_t>(-low[i], 0), x.dim(axis) - std::max<std::int64_t>(-high[i], 0));
  }
  std::vector<Sym> inputs{x, transposed_weights(w, groups)};
  if (const Sym bias = c.optional(2)) inputs.push_back(bias);
  c.output(conv(inputs, {{"strides", Dims(kernel.size(), 1)},
                         {"pads", Dims(2 * kernel.size(), 0)},
                         {"dilations", window.dilations},
                         {"groups", groups}}));
}

const OnnxOp rows[] = {
    {"Conv", 1, conv_op},
    {"ConvTranspose", 1, conv_transpose},
};

}  // namespace

std::span<const OnnxOp> onnx_convolution_ops() {
  return rows;
}

}  // namespace sylvite
