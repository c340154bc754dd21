#include "frontend/build/convolution.h"

#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"

namespace sylvite {
namespace {

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -ceil_div(-a, b);
}

Dims joined(Dims first, const Dims& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

/// One spatial axis of a transposed convolution. Tap k = tap * phases + phase of the window adds x[i] to element
/// i * stride + k of the full result, which is number i + tap of its phase.
struct PhasedAxis {
  std::int64_t stride, dilation;
  std::int64_t width;  ///< of the window, with what dilation leaves out where there are strides
  std::int64_t taps, phases;
  std::int64_t start, length;  ///< of the result in the full one
  std::int64_t extent;         ///< of x

  [[nodiscard]] std::int64_t first() const { return floor_div(start, stride); }
  [[nodiscard]] std::int64_t count() const { return floor_div(start + length - 1, stride) - first() + 1; }
  /// What the window of the convolution reaches over x at its begin and its end; negative: leaves out.
  [[nodiscard]] std::int64_t before() const { return (taps - 1) * dilation - first(); }
  [[nodiscard]] std::int64_t behind() const { return first() + count() - extent; }
};

/// With strides, what dilation leaves out of the window is filled with zeros: `w` changes with it.
std::vector<PhasedAxis> phased_axes(Sym x, Sym& w, const TransposedWindow& window) {
  const Dims kernel = spatial_dims(w), spatial = spatial_dims(x);
  std::vector<PhasedAxis> axes;
  Dims high(2, 0), interior(2, 0);
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    PhasedAxis axis{};
    axis.stride = window.strides[i];
    axis.dilation = axis.stride == 1 ? window.dilations[i] : 1;
    axis.extent = spatial[i];
    const std::int64_t reach = (kernel[i] - 1) * window.dilations[i] + 1;
    axis.width = axis.stride == 1 ? kernel[i] : reach;
    axis.phases = std::min(axis.stride, axis.width);
    axis.taps = ceil_div(axis.width, std::max<std::int64_t>(axis.phases, 1));
    axis.start = window.begin[i];
    axis.length =
        (axis.extent - 1) * axis.stride + reach + window.output_padding[i] - window.begin[i] - window.end[i];
    if (kernel[i] < 1 || axis.extent < 1 || axis.length < 1)
      throw ModelError("a transposed convolution of {} elements by a window of {} has {} results",
                       axis.extent, kernel[i], axis.length);
    interior.push_back(axis.stride == 1 ? 0 : window.dilations[i] - 1);
    high.push_back(axis.taps * axis.phases - axis.width);
    axes.push_back(axis);
  }
  w = pad(w, Dims(high.size(), 0), high, 0, interior);
  return axes;
}

/// [C, M/groups, k...] -> [phases... groups M/groups, C/groups, taps...], taps in reverse: the convolution's filters; with
/// `are_ahead`, groups are ahead of phases. Axes that have nothing to split stay as they are, so that transposed filters are only a
/// view.
Sym phased_filters(Sym w, const std::vector<PhasedAxis>& axes, std::int64_t groups, bool are_ahead) {
  const Dims dims = w.dims();
  Dims split, result{groups * dims[1], dims[0] / groups};
  std::vector<std::int64_t> ahead, phases, channels, taps;
  const auto add = [&](std::vector<std::int64_t>& axes_of, std::int64_t extent) {
    axes_of.push_back(static_cast<std::int64_t>(split.size()));
    split.push_back(extent);
  };
  if (groups > 1) add(are_ahead ? ahead : channels, groups);
  add(taps, dims[0] / groups);
  add(channels, dims[1]);
  for (const PhasedAxis& axis : axes) {
    add(taps, axis.taps);
    if (axis.phases > 1) add(phases, axis.phases);
    result[0] *= axis.phases;
    result.push_back(axis.taps);
  }
  w = transpose(reshape(w, split), joined(joined(joined(ahead, phases), channels), taps));
  for (int axis = w.rank() - static_cast<int>(axes.size()); axis < w.rank(); ++axis)
    if (w.dim(axis) > 1) w = flip(w, axis);
  return reshape(w, result);
}

/// Of channels [N, groups, phases... M/groups, ...] the result [N, M, ...]: phases side by side, zeros where the window does not
/// reach.
Sym phases_side_by_side(Sym y, const std::vector<PhasedAxis>& axes, std::int64_t channels,
                        std::int64_t groups) {
  const auto rank = static_cast<std::int64_t>(axes.size());
  Dims split{y.dim(0)}, result{y.dim(0), channels}, high(2, 0);
  std::vector<std::int64_t> perm{0};
  const std::int64_t ahead = groups > 1 ? 1 : 0;
  if (ahead == 1) {
    split.push_back(groups);
    perm.push_back(1);
    high.push_back(0);
  }
  perm.push_back(ahead + rank + 1);
  for (std::int64_t i = 0; i < rank; ++i) {
    const PhasedAxis& axis = axes[static_cast<std::size_t>(i)];
    split.push_back(axis.phases);
    perm.insert(perm.end(), {ahead + rank + 2 + i, ahead + 1 + i});
    high.insert(high.end(), {0, axis.stride - axis.phases});
    result.push_back(axis.count() * axis.stride);
  }
  split.push_back(channels / groups);
  for (const PhasedAxis& axis : axes) split.push_back(axis.count());
  y = transpose(reshape(y, split), perm);
  return reshape(pad(y, Dims(high.size(), 0), high), result);
}

/// The same by whole rows of channels, [N, ..., M] in between: where channels lie innermost, that moves whole vectors.
Sym rows_side_by_side(Sym y, const std::vector<PhasedAxis>& axes, std::int64_t channels,
                      std::int64_t groups) {
  const auto rank = static_cast<std::int64_t>(axes.size());
  const std::int64_t own = groups > 1 ? 1 : 0;
  Dims split{y.dim(0)}, result{y.dim(0)}, high{0};
  std::vector<std::int64_t> behind{0}, perm{0}, ahead{0, rank + 1};
  for (std::int64_t i = 0; i < rank; ++i) {
    const PhasedAxis& axis = axes[static_cast<std::size_t>(i)];
    behind.push_back(i + 2);
    ahead.push_back(i + 1);
    split.push_back(axis.count());
    perm.insert(perm.end(), {1 + i, 1 + rank + own + i});
    high.insert(high.end(), {0, axis.stride - axis.phases});
    result.push_back(axis.count() * axis.stride);
  }
  if (own == 1) {
    split.push_back(groups);
    perm.push_back(1 + rank);
    high.push_back(0);
  }
  for (const PhasedAxis& axis : axes) split.push_back(axis.phases);
  behind.push_back(1);
  split.push_back(channels / groups);
  perm.push_back(2 * rank + 1 + own);
  high.push_back(0);
  result.push_back(channels);
  y = transpose(reshape(transpose(y, behind), split), perm);
  return transpose(reshape(pad(y, Dims(high.size(), 0), high), result), ahead);
}

Sym interleaved(Sym y, const std::vector<PhasedAxis>& axes, std::int64_t channels, std::int64_t groups,
                bool innermost) {
  y = (innermost ? rows_side_by_side : phases_side_by_side)(y, axes, channels, groups);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t start = axes[i].start - axes[i].first() * axes[i].stride;
    y = slice(y, static_cast<int>(i) + 2, start, start + axes[i].length);
  }
  return y;
}

Sym add_to_channels(Sym y, Sym bias) {
  Dims dims(static_cast<std::size_t>(y.rank()), 1);
  dims[1] = y.dim(1);
  return y + reshape(bias, dims);
}

/// `low` and `high` per spatial axis; negative: that much of x is left out, and the number becomes 0.
Sym without_what_is_left_out(Sym x, Dims& low, Dims& high) {
  for (std::size_t i = 0; i < low.size(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    x = slice(x, axis, std::max<std::int64_t>(-low[i], 0), x.dim(axis) - std::max<std::int64_t>(-high[i], 0));
    low[i] = std::max<std::int64_t>(low[i], 0);
    high[i] = std::max<std::int64_t>(high[i], 0);
  }
  return x;
}

/// [groups, phases, M/groups] of a bias [M].
Sym bias_of_phases(Sym bias, std::int64_t groups, std::int64_t phases) {
  if (phases == 1) return bias;
  const std::int64_t channels = bias.dim(0);
  const Sym each = reshape(bias, {groups, 1, channels / groups});
  return reshape(concat(std::vector<Sym>(static_cast<std::size_t>(phases), each), 1), {phases * channels});
}

/// A convolution whose results are the phases of a transposed one, [groups, phases... channels].
struct PhasedConv {
  Sym x, w, bias;
  Dims low, high, dilations;
  std::int64_t groups;
};

Sym conv_of(PhasedConv c) {
  const Sym x = without_what_is_left_out(c.x, c.low, c.high);
  std::vector<Sym> inputs{x, c.w};
  if (c.bias) inputs.push_back(c.bias);
  return conv(inputs, {{"strides", Dims(c.low.size(), 1)},
                       {"pads", joined(c.low, c.high)},
                       {"dilations", c.dilations},
                       {"groups", c.groups}});
}

/// Few channels fill no vector, and windows of 3x3 are done in fewer products than they have taps.
bool gains_by_phases(const std::vector<PhasedAxis>& axes, std::int64_t channels) {
  constexpr std::int64_t least_channels = 8;
  const bool is_square = axes.size() == 2 && axes[0].taps == 3 && axes[1].taps == 3;
  return channels >= least_channels && !is_square;
}

/// Phases from `axis` on apart where the last of them have a tap less than the others, which is the first of their filters: zeros.
/// There are `outer` phases of the axes before, of which more than one stay together.
Sym conv_by_phases(const PhasedConv& c, const std::vector<PhasedAxis>& axes, std::size_t axis,
                   std::int64_t outer) {
  if (axis == axes.size() || outer > 1) return conv_of(c);
  const PhasedAxis& own = axes[axis];
  const std::int64_t whole = own.phases - (own.taps * own.phases - own.width);
  if (own.taps == 1 || whole == own.phases) return conv_by_phases(c, axes, axis + 1, own.phases);
  const std::int64_t cut = c.w.dim(0) / own.phases * whole;
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    PhasedConv some = c;
    some.w = slice(c.w, 0, begin, end);
    if (c.bias) some.bias = slice(c.bias, 0, begin, end);
    return some;
  };
  PhasedConv rest = part(cut, c.w.dim(0));
  rest.w = slice(rest.w, static_cast<int>(axis) + 2, 1, own.taps);
  rest.low[axis] -= own.dilation;
  return concat({conv_by_phases(part(0, cut), axes, axis + 1, whole),
                 conv_by_phases(rest, axes, axis + 1, own.phases - whole)},
                1);
}

}  // namespace

Sym transposed_conv(Sym x, Sym w, Sym bias, const TransposedWindow& window, std::int64_t groups) {
  if (spatial_dims(w).size() != spatial_dims(x).size())
    throw ModelError("the weights have {} spatial axes, the input {}", spatial_dims(w).size(),
                     spatial_dims(x).size());
  if (groups < 1 || w.dim(0) % groups != 0)
    throw ModelError("{} groups do not divide {} channels", groups, w.dim(0));
  const std::vector<PhasedAxis> axes = phased_axes(x, w, window);
  std::int64_t phases = 1;
  Dims low, high, dilations;
  bool has_strides = false, has_gaps = false;
  for (const PhasedAxis& axis : axes) {
    phases *= axis.phases;
    has_strides = has_strides || axis.stride > 1;
    has_gaps = has_gaps || axis.stride > axis.phases;
    low.push_back(axis.before());
    high.push_back(axis.behind());
    dilations.push_back(axis.dilation);
  }
  // Groups of several channels have filters for each phase. Else each phase has groups of its own: one channel to one.
  const std::int64_t ahead = w.dim(0) > groups ? groups : 1;
  const std::int64_t copies = ahead == groups ? 1 : phases;
  if (copies > 1) x = concat(std::vector<Sym>(static_cast<std::size_t>(copies), x), 1);
  Sym each_bias;
  // Where every result is some phase's, the convolution adds the bias, once for each phase.
  if (bias && !has_gaps) each_bias = bias_of_phases(bias, ahead, phases);
  const PhasedConv whole_conv{
      x, phased_filters(w, axes, groups, ahead > 1), each_bias, low, high, dilations, groups * copies};
  const bool is_apart =
      groups == 1 && w.is_constant() && !window.innermost && gains_by_phases(axes, w.dim(1));
  const Sym y = is_apart ? conv_by_phases(whole_conv, axes, 0, 1) : conv_of(whole_conv);
  if (!has_strides) return y;
  const Sym whole = interleaved(y, axes, groups * w.dim(1), ahead, window.innermost);
  return bias && has_gaps ? add_to_channels(whole, bias) : whole;
}
namespace {

/// x, and pads at its end, such that the window meets nothing behind its last place.
struct TrimmedInput {
  Sym x;
  Dims pads;  ///< begins, then ends
};
TrimmedInput trimmed(Sym x, const Dims& outputs, const Dims& kernel, const EvenWindow& window) {
  Dims low = window.padding, high;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const std::int64_t met = (outputs[i] - 1) * window.strides[i] + (kernel[i] - 1) * window.dilations[i] + 1;
    high.push_back(met - low[i] - x.dim(static_cast<int>(i) + 2));
  }
  x = without_what_is_left_out(x, low, high);
  return {x, joined(low, high)};
}

/// [N, groups C, ...] -> [groups, C, N ...].
Sym rows_of_pixels(Sym x, std::int64_t groups) {
  const std::int64_t channels = x.dim(1) / groups;
  const std::int64_t pixels = checked_product(spatial_dims(x), "map");
  const Sym split = reshape(x, {x.dim(0), groups, channels, pixels});
  return reshape(transpose(split, {1, 2, 0, 3}), {groups, channels, x.dim(0) * pixels});
}

/// A product for every tap of the window: gradients [O, pixels] times what the tap met of x, [pixels, C].
Sym gradient_by_products(Sym grad, const TrimmedInput& input, const Dims& filter_dims,
                         const EvenWindow& window, std::int64_t groups) {
  const Dims kernel(filter_dims.begin() + 2, filter_dims.end());
  const std::size_t rank = kernel.size();
  const Dims low(input.pads.begin(), input.pads.begin() + static_cast<std::ptrdiff_t>(rank));
  const Dims high(input.pads.begin() + static_cast<std::ptrdiff_t>(rank), input.pads.end());
  const Sym x = pad(input.x, joined({0, 0}, low), joined({0, 0}, high));
  std::vector<Sym> met;
  const std::int64_t taps = checked_product(kernel, "window");
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    Sym at = x;
    std::int64_t rest = tap;
    for (std::size_t i = rank; i-- > 0; rest /= kernel[i]) {
      const std::int64_t start = rest % kernel[i] * window.dilations[i], step = window.strides[i];
      const int axis = static_cast<int>(i) + 2;
      at = slice(at, axis, start, start + (grad.dim(axis) - 1) * step + 1, step);
    }
    met.push_back(rows_of_pixels(at, groups));
  }
  // [groups, O/groups, pixels] x [groups, pixels, taps C/groups]
  const Sym products = matmul(rows_of_pixels(grad, groups), swap_axes(concat(met, 1), 1, 2));
  const Sym split = reshape(products, {filter_dims[0], taps, filter_dims[1]});
  return reshape(swap_axes(split, 1, 2), filter_dims);
}

/// Each channel of each image by its own gradient, as a convolution whose window is as large as the map; then the sum of
/// the images.
Sym gradient_by_channels(Sym grad, const TrimmedInput& input, const Dims& filter_dims,
                         const EvenWindow& window) {
  const std::int64_t maps = grad.dim(0) * grad.dim(1);
  const Sym x = reshape(input.x, joined({1, maps}, spatial_dims(input.x)));
  const Sym filters = reshape(grad, joined({maps, 1}, spatial_dims(grad)));
  const Sym y = conv(
      {x, filters},
      {{"strides", window.dilations}, {"pads", input.pads}, {"dilations", window.strides}, {"groups", maps}});
  const Dims kernel(filter_dims.begin() + 2, filter_dims.end());
  const Sym each = reshape(y, joined({grad.dim(0), grad.dim(1), 1}, kernel));
  return reduce(Op::reduce_sum, each, {0}, false);
}

/// A convolution of x by the gradients, with images as channels and channels as images.
Sym gradient_by_images(Sym grad, const TrimmedInput& input, const EvenWindow& window) {
  const Sym y = conv({swap_axes(input.x, 0, 1), swap_axes(grad, 0, 1)}, {{"strides", window.dilations},
                                                                         {"pads", input.pads},
                                                                         {"dilations", window.strides},
                                                                         {"groups", std::int64_t{1}}});
  return swap_axes(y, 0, 1);  // [C, O, ...] -> [O, C, ...]
}

constexpr std::int64_t vector_channels = 8;  // 16 bytes of 16-bit floats

/// Windows side by side, of few channels or too far apart for templates that walk over the image.
bool has_patches(Sym grad, Sym x, const Dims& kernel, const EvenWindow& window) {
  constexpr std::int64_t widest_step = 8;
  const Dims outputs = spatial_dims(grad), spatial = spatial_dims(x);
  const bool is_far = std::ranges::max(kernel) > widest_step;
  const bool has_few =
      x.dim(1) < vector_channels && x.dim(1) * checked_product(kernel, "kernel") % vector_channels == 0;
  bool fits = (is_far || has_few) && window.strides == kernel;
  for (std::size_t i = 0; i < kernel.size(); ++i)
    fits = fits && window.padding[i] == 0 && window.dilations[i] == 1 && outputs[i] * kernel[i] == spatial[i];
  return fits;
}

/// A product: gradients [O, patches] times patches [patches, C window].
Sym gradient_by_patches(Sym grad, Sym x, const Dims& filter_dims) {
  const std::int64_t lines = grad.dim(2), columns = grad.dim(3), patches = grad.dim(0) * lines * columns;
  const Sym cut = reshape(x, {x.dim(0), x.dim(1), lines, filter_dims[2], columns, filter_dims[3]});
  const Sym rows = reshape(transpose(cut, {0, 2, 4, 1, 3, 5}),
                           {patches, filter_dims[1] * filter_dims[2] * filter_dims[3]});
  const Sym of = reshape(transpose(grad, {0, 2, 3, 1}), {patches, filter_dims[0]});
  return reshape(matmul(swap_axes(of, 0, 1), rows), filter_dims);
}

/// With channels of zeros behind its own.
Sym with_whole_vectors(Sym x) {
  const std::int64_t missing = round_up(x.dim(1), vector_channels) - x.dim(1);
  Dims high(static_cast<std::size_t>(x.rank()), 0);
  high[1] = missing;
  return missing == 0 ? x : pad(x, Dims(high.size(), 0), high);
}

bool is_depthwise(Sym grad, Sym x, std::int64_t groups) {
  return groups > 1 && x.dim(1) == groups && grad.dim(1) == groups;
}

/// The filter of its taps [taps, O, C].
Sym filter_of_taps(Sym taps, const Dims& filter_dims) {
  return reshape(transpose(taps, {1, 2, 0}), filter_dims);
}

}  // namespace

Sym filter_gradient(Sym grad, Sym x, const Dims& filter_dims, const EvenWindow& window, std::int64_t groups) {
  const Dims kernel(filter_dims.begin() + 2, filter_dims.end());
  const TrimmedInput input = trimmed(x, spatial_dims(grad), kernel, window);
  const bool is_one_tap = std::ranges::all_of(kernel, [](std::int64_t k) { return k == 1; });
  if (is_depthwise(grad, x, groups)) return gradient_by_channels(grad, input, filter_dims, window);
  if (groups > 1 || is_one_tap) return gradient_by_products(grad, input, filter_dims, window, groups);
  return gradient_by_images(grad, input, window);
}

namespace {

/// The sums for an image of few channels: the taps of a line are one, with all their channels, as templates read them where
/// no window leaves the image. Pixels get channels of zeros, and images a border.
Sym gradient_by_lines(Sym grad, Sym x, const Dims& filter_dims, const EvenWindow& window) {
  const Dims kernel(filter_dims.begin() + 2, filter_dims.end()), outputs = spatial_dims(grad);
  const bool is_even = window.strides[1] % 2 == 0;  // windows begin at multiples of 16 bytes
  const std::int64_t channels =
      x.dim(1) <= vector_channels / 2 && is_even ? vector_channels / 2 : vector_channels;
  const std::int64_t taps = round_up(kernel[1] * channels, vector_channels) / channels;
  const auto behind = [&](std::size_t i, std::int64_t reach) {
    const std::int64_t last = (outputs[i] - 1) * window.strides[i] + reach;
    return std::max<std::int64_t>(last - window.padding[i] - x.dim(static_cast<int>(i) + 2), 0);
  };
  Dims high = {0, channels - x.dim(1), behind(0, kernel[0]), behind(1, taps)};
  high[3] += (x.dim(3) + window.padding[1] + high[3]) % (vector_channels / channels);
  const Sym padded = pad(x, {0, 0, window.padding[0], window.padding[1]}, high);
  const Sym sums = grad.builder().add(Op::filter_gradient, {with_whole_vectors(grad), padded},
                                      {{"kernel", Dims{kernel[0], taps}},
                                       {"strides", window.strides},
                                       {"pads", Dims{0, 0, 0, 0}},
                                       {"dilations", window.dilations},
                                       {"joined", std::int64_t{1}}});
  Sym each = reshape(slice(sums, 2, 0, filter_dims[0]), {kernel[0], filter_dims[0], taps, channels});
  each = cast(slice(slice(each, 2, 0, kernel[1]), 3, 0, filter_dims[1]), x.dtype());
  return transpose(each, {1, 3, 0, 2});
}

}  // namespace

bool is_kept_whole(Sym grad, Sym x, std::int64_t groups) {
  const bool fills_vectors = x.dim(1) % vector_channels == 0 && grad.dim(1) % vector_channels == 0;
  const bool is_joined = fills_vectors && x.dim(1) > groups && grad.dim(1) > groups;
  return x.rank() == 4 && is_half(x.dtype()) && (groups == 1 || is_depthwise(grad, x, groups) || is_joined);
}

bool is_kept_in_blocks(Sym grad, Sym x, const Dims& filter_dims, const EvenWindow& window,
                       std::int64_t groups) {
  constexpr std::int64_t most_columns = 12, least_outputs = 8, least_of_group = 4;
  if (x.rank() != 4 || x.dtype() != DType::f32) return false;
  const Dims kernel(filter_dims.begin() + 2, filter_dims.end());
  if (groups == 1 && has_patches(grad, x, kernel, window)) return true;
  const bool are_wide = std::min(x.dim(1), grad.dim(1)) >= least_of_group * groups;
  return (groups == 1 || are_wide || is_depthwise(grad, x, groups)) && kernel[0] * kernel[1] > 1 &&
         kernel[1] <= most_columns && grad.dim(1) >= least_outputs;
}

Sym filter_gradient_of_blocks(Sym grad, Sym x, const Dims& filter_dims, const EvenWindow& window,
                              std::int64_t groups) {
  const Dims kernel(filter_dims.begin() + 2, filter_dims.end());
  if (groups == 1 && has_patches(grad, x, kernel, window)) return gradient_by_patches(grad, x, filter_dims);
  const Sym products = grad.builder().add(Op::filter_gradient, {grad, x},
                                          {{"kernel", kernel},
                                           {"strides", window.strides},
                                           {"pads", joined(window.padding, window.padding)},
                                           {"dilations", window.dilations},
                                           {"groups", groups}});
  return filter_of_taps(reshape(products, {products.dim(1), filter_dims[0], filter_dims[1]}), filter_dims);
}

Sym whole_filter_gradient(Sym grad, Sym x, const Dims& filter_dims, const EvenWindow& window,
                          std::int64_t groups) {
  const Dims kernel(filter_dims.begin() + 2, filter_dims.end());
  const DType dtype = x.dtype();
  if (groups == 1 && has_patches(grad, x, kernel, window)) return gradient_by_patches(grad, x, filter_dims);
  if (groups == 1 && x.dim(1) < vector_channels && kernel[1] > 1 && window.dilations[1] == 1)
    return gradient_by_lines(grad, x, filter_dims, window);
  // Pixels are multiples of 16 bytes apart.
  grad = with_whole_vectors(grad);
  x = with_whole_vectors(x);
  const Sym products =
      grad.builder().add(Op::filter_gradient, {grad, x},
                         {{"kernel", kernel},
                          {"strides", window.strides},
                          {"pads", joined(window.padding, window.padding)},
                          {"dilations", window.dilations},
                          {"groups", groups > 1 && groups == filter_dims[0] ? x.dim(1) : groups}});
  Sym each = slice(slice(products, 2, 0, filter_dims[0]), 3, 0, filter_dims[1]);
  each = reshape(each, {products.dim(1), filter_dims[0], filter_dims[1]});
  return filter_of_taps(cast(each, dtype), filter_dims);
}

}  // namespace sylvite
