// Fourier transforms, windows put together, determinants and deformable convolution.

#include <algorithm>
#include <cmath>

#include "base/error.h"
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
  fourier.is_inverse = c.integer("inverse", 0) != 0;
  fourier.is_onesided = c.integer("onesided", 0) != 0;
  fourier.length = fourier.is_inverse && fourier.is_onesided ? 2 * (x.dim(at) - 1) : x.dim(at);
  if (c.has_input(1)) fourier.length = c.constant_integer(1);
  if (fourier.length < 1) throw ModelError("the transform has length {}", fourier.length);
  c.output(swap_axes(fourier_transform(swap_axes(x, at, -2), fourier), at, -2));
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
  fourier.is_inverse = is_inverse;
  fourier.is_onesided = true;
  fourier.length = is_inverse ? 2 * (x.dim(-2) - 1) : x.dim(-2);
  if (fourier.length < 1) throw ModelError("the transform has length {}", fourier.length);
  const Sym y = fourier_transform(x, fourier);
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
  fourier.length = length;
  fourier.is_onesided = c.integer("onesided", 1) != 0;
  c.output(fourier_transform(framed, fourier));
}

/// What meets a place along one dim of an image: an element of a block's window, and which block.
struct Meeting {
  std::int64_t tap, block;
};

/// Per place of dim i of the image, what meets it.
std::vector<std::vector<Meeting>> meetings(const MapWindow& w, std::size_t i, std::int64_t extent,
                                           std::int64_t blocks) {
  std::vector<std::vector<Meeting>> found(static_cast<std::size_t>(extent));
  for (std::int64_t tap = 0; tap < w.kernel[i]; ++tap)
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::int64_t at = block * w.strides[i] + tap * w.dilations[i] - w.pads[i];
      if (at >= 0 && at < extent) found[static_cast<std::size_t>(at)].push_back({tap, block});
    }
  return found;
}

/// Which element of all blocks' is the `turn`-th to meet each place of an image, and where there is one.
struct MetElements {
  std::vector<std::int64_t> index;
  std::vector<std::uint8_t> is_met;  ///< a condition per place
};

MetElements met_elements(const std::vector<std::vector<std::vector<Meeting>>>& met, const MapWindow& w,
                         const Dims& image, const Dims& blocks, Dims turn) {
  MetElements found;
  const std::int64_t size = checked_product(image, "image"), places = checked_product(blocks, "blocks");
  const Dims image_strides = dense_strides(image);
  const Dims tap_strides = dense_strides(w.kernel), block_strides = dense_strides(blocks);
  for (std::int64_t place = 0; place < size; ++place) {
    std::int64_t tap = 0, block = 0;
    bool is_met = true;
    for (std::size_t i = 0; i < image.size(); ++i) {
      const auto& here = met[i][static_cast<std::size_t>(place / image_strides[i] % image[i])];
      is_met = is_met && turn[i] < std::ssize(here);
      if (!is_met) break;
      const Meeting& meeting = here[static_cast<std::size_t>(turn[i])];
      tap += meeting.tap * tap_strides[i];
      block += meeting.block * block_strides[i];
    }
    found.index.push_back(is_met ? tap * places + block : 0);
    found.is_met.push_back(is_met ? 1 : 0);
  }
  return found;
}

/// Adds up overlapping blocks. Each place of the image gathers what meets it, a sum of as many gathers as blocks overlap.
void col2im(ImportContext& c) {
  const Sym x = c.input(0);
  const std::vector<std::int64_t> image = c.constant_integers(1);
  const MapWindow w = read_window(c, c.constant_integers(2), image);
  const std::int64_t taps = checked_product(w.kernel, "block");
  Dims blocks;
  for (std::size_t i = 0; i < image.size(); ++i)
    blocks.push_back((image[i] + w.pads[i] + w.pads[i + w.rank()] - w.extent(i)) / w.strides[i] + 1);
  const std::int64_t places = checked_product(blocks, "blocks"), size = checked_product(image, "image");
  if (x.rank() != 3 || x.dim(1) % taps != 0 || x.dim(2) != places)
    throw ModelError("{} blocks of {} elements do not fit the input", places, taps);
  c.builder().reserve_table({2, taps, places});
  std::vector<std::vector<std::vector<Meeting>>> met;
  Dims turns;  // how many meet at most, per dim
  for (std::size_t i = 0; i < image.size(); ++i) {
    met.push_back(meetings(w, i, image[i], blocks[i]));
    std::size_t most = 0;
    for (const auto& here : met.back()) most = std::max(most, here.size());
    turns.push_back(static_cast<std::int64_t>(most));
  }
  const std::int64_t sums = checked_product(turns, "overlapping blocks");
  c.builder().reserve_table({2, sums, size});
  const Sym flat = reshape(x, {x.dim(0), x.dim(1) / taps, taps * places});
  Sym y = c.builder().filled(x.dtype(), {flat.dim(0), flat.dim(1), size}, 0);
  const Dims turn_strides = dense_strides(turns);
  for (std::int64_t sum = 0; sum < sums && x.size() > 0; ++sum) {
    Dims turn;
    for (std::size_t i = 0; i < turns.size(); ++i) turn.push_back(sum / turn_strides[i] % turns[i]);
    const MetElements elements = met_elements(met, w, image, blocks, turn);
    Sym part = gather(flat, c.builder().constant(Tensor::of(DType::i64, {size}, elements.index)), 2);
    if (std::ranges::count(elements.is_met, 0) > 0)
      part = where(c.builder().constant(Tensor::of(DType::boolean, {size}, elements.is_met)), part, 0.0);
    y = sum == 0 ? part : y + part;
  }
  Dims dims{flat.dim(0), flat.dim(1)};
  dims.insert(dims.end(), image.begin(), image.end());
  c.output(reshape(y, dims));
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

const OnnxOp rows[] = {
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
  return rows;
}

}  // namespace sylvite
