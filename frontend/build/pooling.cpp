#include "frontend/build/pooling.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "frontend/build/normalization.h"
#include "frontend/values/size_facts.h"

namespace sylvite {
namespace {

Attributes pool_attributes(const MapWindow& window) {
  return {{"kernel", window.kernel},
          {"strides", window.strides},
          {"pads", window.pads},
          {"dilations", window.dilations}};
}

Sym pool_average(Sym x, const MapWindow& window, bool counts_padding) {
  Attributes attributes = pool_attributes(window);
  attributes.set("count_include_pad", std::int64_t{counts_padding});
  return x.builder().add(Op::avg_pool, {x}, attributes);
}

/// How far apart neighbours along each axis are in a flat map.
Dims map_strides(const Dims& spatial, bool is_column_major) {
  if (!is_column_major) return dense_strides(spatial);
  Dims strides;
  std::int64_t stride = 1;
  for (const std::int64_t extent : spatial) {
    strides.push_back(stride);
    stride *= extent;
  }
  return strides;
}

/// A maximum so far, and where it lies: counted from its window's first element. One number while all lie there.
struct PlacedMax {
  Sym value, place;
};

/// Of two neighbours the first, unless the second is larger or NaN.
PlacedMax larger(const PlacedMax& first, const PlacedMax& second) {
  Sym takes = apply(Op::greater, second.value, first.value);
  if (is_float(second.value.dtype())) takes = apply(Op::logical_or, takes, apply(Op::is_nan, second.value));
  return {where(takes, second.value, first.value), where(takes, second.place, first.place)};
}

/// The windows' maxima along one axis, by as many slices as the window has taps there. Positions of taps are `stride` apart.
PlacedMax max_along(const PlacedMax& map, int axis, std::int64_t taps, std::int64_t dilation,
                    std::int64_t step, std::int64_t stride) {
  const std::int64_t windows = (map.value.dim(axis) - (taps - 1) * dilation - 1) / step + 1;
  PlacedMax best;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    const std::int64_t start = tap * dilation;
    const auto met = [&](Sym x) {
      return x.rank() == 0 ? x : slice(x, axis, start, start + (windows - 1) * step + 1, step);
    };
    const double ahead = static_cast<double>(start * stride);
    const PlacedMax now{met(map.value), met(map.place) + ahead};
    best = tap == 0 ? now : larger(best, now);
  }
  return best;
}

}  // namespace

Dims ceil_extension(const MapWindow& window, const Dims& spatial) {
  Dims extension(window.rank(), 0);
  for (std::size_t i = 0; i < window.rank(); ++i) {
    const std::int64_t low = window.pads[i], high = window.pads[i + window.rank()];
    const std::int64_t stride = window.strides[i], width = window.extent(i);
    const auto extension_at = [low, high, stride, width](const Dims& extent) {
      const std::int64_t padded = extent[0] + low + high;
      if (padded < width) return Dims{0};
      std::int64_t last = (padded - width + stride - 1) / stride;
      if (last * stride >= extent[0] + low) --last;
      return Dims{std::max<std::int64_t>(last * stride + width - padded, 0)};
    };
    const std::string rule =
        fmt::format("last window of {}, stride {}, pads {} and {}", width, stride, low, high);
    const DecisionAsExtents follow = [low, high, stride, width](const std::vector<Extent>& extent) {
      const Extent padded = extent.at(0) + low + high;
      const Extent last = min(ceil_div(padded - width, stride), floor_div(extent[0] + low - 1, stride));
      return FollowingExtents{{max(last * stride + width - padded, 0)}, {last + 1}};
    };
    extension[i] = decide_by_sizes(rule, {spatial[i]}, extension_at, follow)[0];
  }
  return extension;
}

MapWindow extended(MapWindow window, const Dims& extension) {
  for (std::size_t i = 0; i < window.rank(); ++i) window.pads[i + window.rank()] += extension[i];
  return window;
}

Sym max_pool(Sym x, const MapWindow& window) {
  return x.builder().add(Op::max_pool, {x}, pool_attributes(window));
}

Sym max_positions(Sym x, const MapWindow& window, bool is_column_major) {
  GraphBuilder& b = x.builder();
  const Dims spatial = spatial_dims(x), strides = map_strides(spatial, is_column_major);
  Dims low(2, 0);
  Dims high(2, 0);
  for (std::size_t i = 0; i < window.rank(); ++i) {
    low.push_back(window.pads[i]);
    high.push_back(window.pads[i + window.rank()]);
  }
  const double lowest = is_float(x.dtype()) ? -std::numeric_limits<double>::infinity() : -1e9;
  PlacedMax map{pad(is_float(x.dtype()) ? x : cast(x, DType::i32), low, high, lowest), {}};
  map.place = b.scalar(DType::i64, 0);
  for (std::size_t i = window.rank(); i-- > 0;)
    map = max_along(map, static_cast<int>(i) + 2, window.kernel[i], window.dilations[i], window.strides[i],
                    strides[i]);
  Sym position = broadcast_to(map.place, map.value.dims());
  for (std::size_t i = 0; i < window.rank(); ++i) {
    const auto axis = static_cast<int>(i);
    Dims line(window.rank() + 2, 1);
    line[i + 2] = position.dim(axis + 2);
    const Sym first =
        b.iota(DType::i64, line, axis + 2) * static_cast<double>(window.strides[i] * strides[i]);
    position = position + (first - static_cast<double>(window.pads[i] * strides[i]));
  }
  return position;
}

Sym average_pool(Sym x, const MapWindow& window, const Dims& extension, bool counts_padding) {
  const bool is_extended = std::any_of(extension.begin(), extension.end(), [](auto e) { return e > 0; });
  if (!counts_padding || !is_extended) return pool_average(x, extended(window, extension), counts_padding);
  // Where padding counts, what is added beyond it does not: sums over windows are divided by counts of elements that are
  // inside the padded map.
  Dims low(2, 0);
  Dims high(2, 0);
  for (std::size_t i = 0; i < window.rank(); ++i) {
    low.push_back(window.pads[i]);
    high.push_back(window.pads[i + window.rank()]);
  }
  MapWindow rest = window;
  rest.pads.assign(2 * window.rank(), 0);
  return pool_average(pad(x, low, high), extended(rest, extension), false);
}

std::vector<std::int64_t> map_axes(Sym x) {
  return axes_from(std::min(2, x.rank()), x.rank());
}

Sym global_average(Sym x) {
  return reduce_mean(x, map_axes(x));
}

}  // namespace sylvite
