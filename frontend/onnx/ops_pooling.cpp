// Poolings over windows and over whole maps.

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "frontend/build/pooling.h"
#include "frontend/onnx/channel_order.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/pooling.h"
#include "frontend/onnx/window.h"
#include "frontend/values/size_facts.h"

namespace sylvite {
namespace {

MapWindow read_pool_window(ImportContext& c, Sym x) {
  return read_window(c, c.integers("kernel_shape"), spatial_dims(x));
}

/// A map that is narrower than the window, but by less than a stride, has one window that ends outside, as quotients that are cut
/// off count them. ONNX says none; files are made for runtimes that cut off.
void add_short_windows(Dims& extension, const MapWindow& window, const Dims& spatial) {
  for (std::size_t i = 0; i < window.rank(); ++i) {
    const std::int64_t pads = window.pads[i] + window.pads[i + window.rank()];
    const std::int64_t stride = window.strides[i], width = window.extent(i);
    const auto missing = [=](const Dims& extent) {
      const std::int64_t lack = width - extent[0] - pads;
      return Dims{lack > 0 && lack < stride ? lack : 0};
    };
    if (missing({spatial[i]})[0] == 0) continue;  // most maps: nothing to decide
    const std::string rule = fmt::format("short window of {}, stride {}, pads {}", width, stride, pads);
    extension[i] = decide_by_sizes(rule, {spatial[i]}, missing)[0];
  }
}

Dims read_extension(ImportContext& c, const MapWindow& window, const Dims& spatial) {
  Dims extension = c.integer("ceil_mode", 0) == 0 ? Dims(window.rank(), 0) : ceil_extension(window, spatial);
  add_short_windows(extension, window, spatial);
  return extension;
}

/// ONNX counts positions through all maps.
Sym max_indices(ImportContext& c, Sym x, const MapWindow& window) {
  const Sym inside = max_positions(x, window, c.integer("storage_order", 0) != 0);
  const auto map = static_cast<double>(checked_product(spatial_dims(x), "map"));
  Dims dims(static_cast<std::size_t>(x.rank()), 1);
  dims[0] = x.dim(0);
  dims[1] = x.dim(1);
  return inside + reshape(c.builder().iota(DType::i64, {dims[0] * dims[1]}, 0), dims) * map;
}

void max_pool_op(ImportContext& c) {
  const Sym x = c.input(0);
  MapWindow window = read_pool_window(c, x);
  window = extended(window, read_extension(c, window, spatial_dims(x)));
  c.output(0, max_pool(x, window));
  if (c.wants_output(1)) c.output(1, max_indices(c, x, window));
}

/// For the domain com.microsoft.
void max_pool_channels_last(ImportContext& c) {
  const Sym x = channels_first(c.input(0));
  const MapWindow window = read_pool_window(c, x);
  c.output(channels_last(max_pool(x, extended(window, read_extension(c, window, spatial_dims(x))))));
}

/// Puts the maxima back where their indices say, zeros elsewhere.
void max_unpool(ImportContext& c) {
  const Sym x = c.input(0);
  const Sym indices = c.input(1);
  const MapWindow window = read_pool_window(c, x);
  Dims natural{x.dim(0), x.dim(1)};
  for (std::size_t i = 0; i < window.rank(); ++i) {
    const std::int64_t spread = (spatial_dims(x)[i] - 1) * window.strides[i] + window.kernel[i];
    natural.push_back(spread - window.pads[i] - window.pads[i + window.rank()]);
  }
  const std::int64_t count = checked_product(natural, "unpooled map");
  const Sym zeros = c.builder().filled(x.dtype(), {count}, 0);
  const Sym y = reshape(
      c.builder().add(Op::scatter_elements, {zeros, reshape(indices, {x.size()}), reshape(x, {x.size()})},
                      {{"axis", std::int64_t{0}}}),
      natural);
  if (!c.has_input(2)) return c.output(y);
  const Dims wanted = c.constant_integers(2);
  if (wanted.size() != natural.size())
    throw ModelError("output_shape has rank {}, expected {}", wanted.size(), natural.size());
  Dims high;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] < natural[i]) throw ModelError("output_shape is smaller than the unpooled map");
    high.push_back(wanted[i] - natural[i]);
  }
  c.output(pad(y, Dims(wanted.size(), 0), high));
}

void average_pool_op(ImportContext& c) {
  c.output(average_pool(c, c.input(0)));
}

void global_average_pool(ImportContext& c) {
  c.output(global_average(c.input(0)));
}

void global_max_pool(ImportContext& c) {
  c.output(reduce(Op::reduce_max, c.input(0), map_axes(c.input(0))));
}

/// |x|^p summed, to the power 1/p.
Sym root_of_sum(Sym sum, double p) {
  if (p == 1) return sum;
  return p == 2 ? apply(Op::sqrt, sum) : apply(Op::pow, sum, 1 / p);
}

Sym absolute_power(Sym x, double p) {
  if (p == 2) return x * x;
  const Sym size = apply(Op::abs, x);
  return p == 1 ? size : apply(Op::pow, size, p);
}

void lp_pool(ImportContext& c) {
  const Sym x = c.input(0);
  const auto p = static_cast<double>(c.integer("p", 2));
  MapWindow window = read_pool_window(c, x);
  window = extended(window, read_extension(c, window, spatial_dims(x)));
  const auto count = static_cast<double>(checked_product(window.kernel, "kernel_shape"));
  c.output(root_of_sum(average_pool(absolute_power(x, p), window, Dims(window.rank(), 0), true) * count, p));
}

void global_lp_pool(ImportContext& c) {
  const Sym x = c.input(0);
  const auto p = static_cast<double>(c.integer("p", 2));
  c.output(root_of_sum(reduce(Op::reduce_sum, absolute_power(x, p), map_axes(x)), p));
}

/// The largest elements of the windows of the innermost axis, each up to the first that counts[..] is false of.
Sym largest_until(Sym x, Sym counts, const MapWindow& window, double lowest) {
  const std::size_t last = window.rank() - 1;
  const int axis = x.rank() - 1;
  const std::int64_t begin = window.pads[last], end = window.pads[last + window.rank()];
  Dims low(static_cast<std::size_t>(x.rank()), 0), high = low;
  low.back() = begin;
  high.back() = end;
  const std::int64_t count = (x.dim(axis) + begin + end - window.kernel[last]) / window.strides[last] + 1;
  const std::int64_t reach = (count - 1) * window.strides[last] + 1;
  check_node_count(4 * window.kernel[last], 8192);
  x = pad(x, low, high, lowest);
  counts = pad(counts, low, high, 1);
  const auto tap = [&](Sym v, std::int64_t i) { return slice(v, axis, i, i + reach, window.strides[last]); };
  Sym largest, goes_on;
  for (std::int64_t i = 0; i < window.kernel[last]; ++i) {
    goes_on = goes_on ? apply(Op::logical_and, goes_on, tap(counts, i)) : tap(counts, i);
    const Sym value = where(goes_on, tap(x, i), lowest);
    largest = largest ? apply(Op::maximum, largest, value) : value;
  }
  return largest;
}

/// For com.microsoft: a line of a window ends where the mask is 0, except at a map's first element if maps have several dims.
/// One mask is for all maps, as ONNX Runtime reads it where a map has a multiple of the masks' number of elements.
void max_pool_with_mask(ImportContext& c) {
  const Sym x = c.input(0);
  const Sym mask = c.input(1);
  const MapWindow window = read_pool_window(c, x);
  const Dims map = spatial_dims(x);
  if (mask.rank() != x.rank() || spatial_dims(mask) != map || mask.dim(0) < 1 || mask.dim(1) < 1)
    throw ModelError("the mask does not fit the input");
  if (checked_product(map, "map") % (mask.dim(0) * mask.dim(1)) != 0 || c.integer("ceil_mode", 0) != 0 ||
      std::ranges::any_of(window.dilations, [](std::int64_t d) { return d != 1; }))
    throw UnsupportedError("{} masks for maps of {} elements, ceil_mode or dilations",
                           mask.dim(0) * mask.dim(1), checked_product(map, "map"));
  const double lowest = std::numeric_limits<float>::lowest();
  Sym counts = apply(Op::logical_not, apply(Op::equal, slice(slice(mask, 0, 0, 1), 1, 0, 1), 0.0));
  if (window.rank() > 1) {
    const Sym place = c.builder().iota(DType::i64, {counts.size()}, 0);
    counts = apply(Op::logical_or, counts, reshape(apply(Op::equal, place, 0.0), counts.dims()));
  }
  MapWindow others = window;
  const std::size_t last = window.rank() - 1;
  others.kernel[last] = others.strides[last] = 1;
  others.pads[last] = others.pads[last + window.rank()] = 0;
  const Sym lines = largest_until(x, counts, window, lowest);
  c.output(window.rank() == 1 ? lines : max_pool(lines, others));
}

const OnnxOp pooling_rows[] = {
    {"AveragePool", 1, average_pool_op},
    {"GlobalAveragePool", 1, global_average_pool},
    {"GlobalLpPool", 2, global_lp_pool},
    {"GlobalMaxPool", 1, global_max_pool},
    {"LpPool", 2, lp_pool},
    {"MaxPool", 1, max_pool_op},
    {"MaxUnpool", 9, max_unpool},
    {"MaxpoolWithMask", 1, max_pool_with_mask, "com.microsoft"},
    {"NhwcMaxPool", 1, max_pool_channels_last, "com.microsoft"},
};

}  // namespace

Sym average_pool(ImportContext& c, Sym x) {
  const MapWindow window = read_pool_window(c, x);
  return average_pool(x, window, read_extension(c, window, spatial_dims(x)),
                      c.integer("count_include_pad", 0) != 0);
}

std::span<const OnnxOp> onnx_pooling_ops() {
  return pooling_rows;
}

}  // namespace sylvite
