// Fourier transforms, windows put together, determinants and deformable convolution.

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/build/fourier.h"
#include "frontend/build/sampling.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/window.h"

namespace sylvite {
namespace {

/// The axis is an attribute up to opset 19, an input from 20 on.
void dft(ImportContext& c) {
  const Sym x = c.input(0);
  if (x.rank() < 2) throw ModelError("the input has rank {}, expected at least 2", x.rank());
  std::int64_t axis = c.opset() < 20 ? c.integer("axis", 1) : -2;
  if (c.opset() >= 20 && c.has_input(2)) axis = c.constant_integer(2);
  const int at = normalize_axis(axis, x.rank());
  if (at == x.rank() - 1) throw ModelError("the last axis holds real and imaginary parts");
  Fourier fourier;
  fourier.is_one_product = c.products_are_fast();
  fourier.is_inverse = c.integer("inverse", 0) != 0;
  fourier.is_onesided = c.integer("onesided", 0) != 0;
  fourier.length = fourier.is_inverse && fourier.is_onesided ? 2 * (x.dim(at) - 1) : x.dim(at);
  if (c.has_input(1)) fourier.length = c.constant_integer(1);
  if (fourier.length < 1) throw ModelError("the transform has length {}", fourier.length);
  c.output(fourier_transform(x, at, fourier));
}

/// Real signals along the last axis to half a spectrum, and back.
template <bool is_inverse>
void real_dft(ImportContext& c) {
  if (c.integer("normalized", 0) != 0)
    throw UnsupportedError("attribute 'normalized' is supported as 0 only");
  if (c.integer("onesided", 1) != 1) throw UnsupportedError("attribute 'onesided' is supported as 1 only");
  if (c.integer("signal_ndim", 1) != 1)
    throw UnsupportedError("attribute 'signal_ndim' is supported as 1 only");
  const Sym x = is_inverse ? c.input(0) : unsqueeze(c.input(0), {-1});
  if (x.rank() < 2 || (is_inverse && x.dim(-1) != 2))
    throw ModelError("the input is no signal, or no spectrum of real and imaginary parts");
  Fourier fourier;
  fourier.is_one_product = c.products_are_fast();
  fourier.is_inverse = is_inverse;
  fourier.is_onesided = true;
  fourier.length = is_inverse ? 2 * (x.dim(-2) - 1) : x.dim(-2);
  if (fourier.length < 1) throw ModelError("the transform has length {}", fourier.length);
  const Sym y = fourier_transform(x, -2, fourier);
  c.output(is_inverse ? squeeze(y, {-1}) : y);
}

/// Inputs: signal [B, n, 1 or 2], or [B, n] as runtimes take it, frame_step, window, frame_length.
void stft(ImportContext& c) {
  const Sym x = c.input(0).rank() == 2 ? unsqueeze(c.input(0), {2}) : c.input(0);
  const std::int64_t step = c.constant_integer(1);
  const Sym window = c.optional(2);
  std::int64_t length = window ? window.size() : x.dim(1);
  if (c.has_input(3)) length = c.constant_integer(3);
  if (x.rank() != 3 || step < 1 || length < 1 || length > x.dim(1))
    throw ModelError("frames of {} every {} do not fit", length, step);
  const std::int64_t frames = 1 + (x.dim(1) - length) / step;
  c.builder().reserve_table({2, frames, length});
  std::vector<std::int64_t> index;
  for (std::int64_t frame = 0; frame < frames; ++frame)
    for (std::int64_t i = 0; i < length; ++i) index.push_back(frame * step + i);
  Sym framed = gather(x, c.builder().constant(Tensor::of(DType::i64, {frames, length}, index)), 1);
  if (window) framed = framed * reshape(window, {window.size(), 1});
  Fourier fourier;
  fourier.is_one_product = c.products_are_fast();
  fourier.length = length;
  fourier.is_onesided = c.integer("onesided", 1) != 0;
  c.output(fourier_transform(framed, -2, fourier));
}

/// Blocks along one axis, where tap t of block b lies at b * stride + t * dilation. Taps are cut into turns of as many as blocks
/// are apart: those of one turn lie side by side, and `step` blocks ahead of the next turn's.
struct FoldedAxis {
  std::int64_t stride, dilation, turns, step;
  std::int64_t missing;  ///< taps of the last turn

  FoldedAxis(std::int64_t taps, std::int64_t stride, std::int64_t dilation)
      : stride(stride), dilation(stride > 1 ? dilation : 1), step(stride > 1 ? 1 : dilation) {
    const std::int64_t width = (taps - 1) * this->dilation + 1;
    turns = ceil_div(width, stride);
    missing = turns * stride - width;
    check_node_count(3 * turns, 8192);
  }
  [[nodiscard]] std::int64_t reach() const { return (turns - 1) * step; }
};

/// [.., taps, .., blocks with zeros around, ..] -> [.., stride, .., blocks + reach, ..], where what meets is added up.
Sym fold_taps(Sym x, int tap_axis, int block_axis, const FoldedAxis& axis) {
  const std::int64_t count = x.dim(block_axis) - axis.reach();
  Sym sum;
  for (std::int64_t turn = 0; turn < axis.turns; ++turn) {
    const Sym taps = slice(x, tap_axis, turn * axis.stride, (turn + 1) * axis.stride);
    const std::int64_t first = axis.reach() - turn * axis.step;
    const Sym part = slice(taps, block_axis, first, first + count);
    sum = sum ? sum + part : part;
  }
  return sum;
}

/// The elements [first, first + count) of an axis, zeros where there are none.
Sym window_of(Sym x, int axis, std::int64_t first, std::int64_t count) {
  const std::int64_t missing = std::max<std::int64_t>(first + count - x.dim(axis), 0);
  Dims high(static_cast<std::size_t>(x.rank()), 0);
  high[static_cast<std::size_t>(axis)] = missing;
  return slice(pad(x, Dims(high.size(), 0), high), axis, first, first + count);
}

/// Adds up overlapping blocks, along one dim after the other.
void col2im(ImportContext& c) {
  const Sym x = c.input(0);
  const std::vector<std::int64_t> image = c.constant_integers(1);
  const MapWindow w = read_window(c, c.constant_integers(2), image);
  const std::int64_t taps = checked_product(w.kernel, "block");
  Dims blocks;
  for (std::size_t i = 0; i < image.size(); ++i)
    blocks.push_back((image[i] + w.pads[i] + w.pads[i + w.rank()] - w.extent(i)) / w.strides[i] + 1);
  const std::int64_t places = checked_product(blocks, "blocks");
  if (x.rank() != 3 || x.dim(1) % taps != 0 || x.dim(2) != places)
    throw ModelError("{} blocks of {} elements do not fit the input", places, taps);
  const auto rank = static_cast<int>(image.size());
  Dims split{x.dim(0), x.dim(1) / taps}, joined = split;
  split.insert(split.end(), w.kernel.begin(), w.kernel.end());
  split.insert(split.end(), blocks.begin(), blocks.end());
  std::vector<FoldedAxis> axes;
  Dims low(split.size(), 0), high = low, interior = low;
  for (std::size_t i = 0; i < image.size(); ++i) {
    axes.emplace_back(w.kernel[i], w.strides[i], w.dilations[i]);
    high[2 + i] = axes[i].missing;
    interior[2 + i] = axes[i].dilation - 1;
    low[2 + w.rank() + i] = high[2 + w.rank() + i] = axes[i].reach();
  }
  Sym y = pad(reshape(x, split), low, high, 0, interior);
  std::vector<std::int64_t> order{0, 1};
  for (int i = 0; i < rank; ++i) {
    y = fold_taps(y, 2 + i, 2 + rank + i, axes[static_cast<std::size_t>(i)]);
    order.insert(order.end(), {2 + rank + i, 2 + i});
    joined.push_back(y.dim(2 + rank + i) * y.dim(2 + i));
  }
  y = reshape(transpose(y, order), joined);
  for (int i = 0; i < rank; ++i)
    y = window_of(y, 2 + i, w.pads[static_cast<std::size_t>(i)], image[static_cast<std::size_t>(i)]);
  c.output(y);
}

/// By expansion along the first row; `columns` are those still in play.
Sym minor_determinant(Sym x, std::int64_t row, const std::vector<std::int64_t>& columns) {
  const auto element = [&](std::int64_t column) {
    return squeeze(slice(slice(x, -2, row, row + 1), -1, column, column + 1), {-2, -1});
  };
  if (columns.size() == 1) return element(columns[0]);
  Sym sum;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::vector<std::int64_t> rest = columns;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    const Sym part = element(columns[i]) * minor_determinant(x, row + 1, rest);
    sum = !sum ? part : i % 2 == 0 ? sum + part : sum - part;
  }
  return sum;
}

void determinant(ImportContext& c) {
  const Sym x = c.input(0);
  if (x.rank() < 2 || x.dim(-1) != x.dim(-2)) throw ModelError("the input is no square matrix");
  if (x.dim(-1) < 1 || x.dim(-1) > 4)
    throw UnsupportedError("determinants of {0}x{0} matrices; up to 4x4 are supported", x.dim(-1));
  c.output(minor_determinant(x, 0, all_axes(static_cast<int>(x.dim(-1)))));
}

struct DeformShapes {
  std::int64_t batch, channels, groups, offset_groups, taps, height, width;
};

/// Where each tap of each output reads: [N * offset groups, taps * outputs] per spatial axis.
std::vector<Sym> deformed_positions(Sym offset, const MapWindow& w, const DeformShapes& s) {
  GraphBuilder& b = offset.builder();
  const Dims dims{s.batch * s.offset_groups, s.taps, 2, s.height, s.width};
  const Sym split = reshape(offset, dims);
  std::vector<Sym> positions;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    std::vector<double> inside;
    for (std::int64_t tap = 0; tap < s.taps; ++tap) {
      const std::int64_t at = axis == 0 ? tap / w.kernel[1] : tap % w.kernel[1];
      inside.push_back(static_cast<double>(at * w.dilations[axis] - w.pads[axis]));
    }
    const Dims grid{1, 1, s.height, s.width};
    const Sym outer =
        b.iota(offset.dtype(), grid, static_cast<int>(axis) + 2) * static_cast<double>(w.strides[axis]);
    const Sym base = outer + b.reals(offset.dtype(), {1, s.taps, 1, 1}, inside);
    const auto at = static_cast<std::int64_t>(axis);
    const Sym moved = squeeze(slice(split, 2, at, at + 1), {2}) + base;
    positions.push_back(reshape(moved, {dims[0], s.taps * s.height * s.width}));
  }
  return positions;
}

/// Samples every tap at its moved position, then contracts taps and channels with the weights.
void deform_conv(ImportContext& c) {
  const Sym x = c.input(0);
  const Sym weight = c.input(1);
  const Sym offset = c.input(2);
  if (x.rank() != 4) throw UnsupportedError("deformable convolution of rank {}; 4 is supported", x.rank());
  const MapWindow w = read_window(c, spatial_dims(weight), spatial_dims(x));
  const DeformShapes s{x.dim(0),
                       x.dim(1),
                       c.integer("group", 1),
                       c.integer("offset_group", 1),
                       checked_product(w.kernel, "kernel"),
                       offset.dim(2),
                       offset.dim(3)};
  if (s.groups < 1 || s.offset_groups < 1 || s.channels % s.offset_groups != 0 ||
      weight.dim(0) % s.groups != 0 || weight.dim(1) * s.groups != s.channels) {
    throw ModelError("groups and channels do not fit");
  }
  c.builder().reserve_table({2, s.taps});
  const std::int64_t per_offset = s.channels / s.offset_groups;
  const std::int64_t places = s.height * s.width;
  const Sym maps = reshape(x, {s.batch * s.offset_groups, per_offset, x.dim(2), x.dim(3)});
  Sym taps = sample(maps, deformed_positions(offset, w, s), {SampleMode::linear, SamplePadding::zeros, true});
  if (const Sym mask = c.optional(4))
    taps = taps * reshape(mask, {s.batch * s.offset_groups, 1, s.taps * places});
  taps = reshape(taps, {s.batch, s.groups, s.channels / s.groups * s.taps, places});
  const Sym matrix = reshape(weight, {s.groups, weight.dim(0) / s.groups, weight.dim(1) * s.taps});
  Sym y = reshape(matmul(matrix, taps), {s.batch, weight.dim(0), s.height, s.width});
  if (const Sym bias = c.optional(3)) y = y + reshape(bias, {bias.size(), 1, 1});
  c.output(y);
}

const OnnxOp signal_rows[] = {
    {"Col2Im", 18, col2im},
    {"DeformConv", 19, deform_conv},
    {"Det", 11, determinant},
    {"DFT", 17, dft},
    {"STFT", 17, stft},
    {"Irfft", 1, real_dft<true>, "com.microsoft"},
    {"Rfft", 1, real_dft<false>, "com.microsoft"},
};

}  // namespace

std::span<const OnnxOp> onnx_signal_ops() {
  return signal_rows;
}

}  // namespace sylvite
