#include "frontend/build/sampling.h"

#include <limits>

#include "base/error.h"

namespace sylvite {
namespace {

/// One of the elements along an axis that a position draws from: its (whole) coordinate and its weight.
struct CoordinateTap {
  Sym coordinate;
  Sym weight;  ///< absent: 1
};

Sym clamp(Sym x, double low, double high) {
  return apply(Op::minimum, apply(Op::maximum, x, low), high);
}

/// Folds x into [low, high] by mirroring at both ends.
Sym reflect(Sym x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return x * 0.0 + low;
  const Sym distance = apply(Op::abs, x - low);
  const Sym turns = apply(Op::floor, distance / range);
  const Sym rest = distance - turns * range;
  const Sym is_odd = apply(Op::greater, turns - apply(Op::floor, turns * 0.5) * 2.0, 0.5);
  return where(is_odd, high - rest, rest + low);
}

struct Borders {
  double low, high;
};

Borders borders_of(std::int64_t extent, bool align_corners) {
  const auto n = static_cast<double>(extent);
  return align_corners ? Borders{0, n - 1} : Borders{-0.5, n - 0.5};
}

/// A position outside the map moves inside first, as the padding says; of a cubic one each of the elements does.
Sym pull_inside(Sym position, std::int64_t extent, const Sampling& sampling) {
  if (sampling.mode == SampleMode::cubic) return position;
  const Borders borders = borders_of(extent, sampling.align_corners);
  const Sym is_outside = apply(Op::logical_or, apply(Op::less, position, borders.low),
                               apply(Op::greater, position, borders.high));
  if (sampling.padding == SamplePadding::border)
    return where(is_outside, clamp(position, 0, static_cast<double>(extent - 1)), position);
  if (sampling.padding == SamplePadding::reflection)
    return where(is_outside, reflect(position, borders.low, borders.high), position);
  return position;
}

/// Keys' cubic convolution with a = -0.75, at distances 1 + t, t, 1 - t and 2 - t.
std::vector<Sym> cubic_weights(Sym t) {
  constexpr double a = -0.75;
  const auto outer = [&](Sym d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  const auto inner = [&](Sym d) { return ((a + 2) * d - (a + 3)) * d * d + 1.0; };
  return {outer(t + 1.0), inner(t), inner(1.0 - t), outer(2.0 - t)};
}

std::vector<CoordinateTap> taps_of(Sym position, SampleMode mode) {
  if (mode == SampleMode::nearest) return {{apply(Op::round, position), Sym()}};
  const Sym base = apply(Op::floor, position);
  const Sym t = position - base;
  if (mode == SampleMode::linear) return {{base, 1.0 - t}, {base + 1.0, t}};
  const std::vector<Sym> weights = cubic_weights(t);
  std::vector<CoordinateTap> taps;
  taps.reserve(4);
  for (int i = 0; i < 4; ++i)
    taps.push_back({base + static_cast<double>(i - 1), weights[static_cast<std::size_t>(i)]});
  return taps;
}

/// A tap ready to be read: its coordinate is inside the map, and its weight is zero where nothing is to be
/// read. Coordinates are of type `whole`.
CoordinateTap inside(const CoordinateTap& tap, std::int64_t extent, const Sampling& sampling, DType whole) {
  const auto last = static_cast<double>(extent - 1);
  CoordinateTap result = tap;
  if (sampling.padding == SamplePadding::zeros) {
    const Sym is_valid = apply(Op::logical_and, apply(Op::greater_equal, tap.coordinate, 0.0),
                               apply(Op::less_equal, tap.coordinate, last));
    const Sym valid = cast(is_valid, tap.coordinate.dtype());
    result.weight = tap.weight ? tap.weight * valid : valid;
  } else if (sampling.padding == SamplePadding::reflection) {
    const Borders borders = borders_of(extent, sampling.align_corners);
    result.coordinate = apply(Op::round, reflect(tap.coordinate, borders.low, borders.high));
  }
  result.coordinate = cast(clamp(result.coordinate, 0, last), whole);
  return result;
}

/// Reads [N, C, P] at flat positions [N, Q] of each image.
Sym read_pixels(Sym flat, Sym index) {
  const Dims dims{flat.dim(0), flat.dim(1), index.dim(1)};
  const Sym wide = broadcast_to(unsqueeze(index, {1}), dims);
  return flat.builder().add(Op::gather_elements, {flat, wide}, {{"axis", std::int64_t{2}}});
}

struct Sampler {
  Sym flat;                                      ///< [N, C, P]
  Dims strides;                                  ///< per spatial axis
  std::vector<std::vector<CoordinateTap>> taps;  ///< per spatial axis
  Sym sum;

  /// Adds the products of every choice of one tap per axis.
  void add(std::size_t axis, Sym index, Sym weight) {
    if (axis == taps.size()) {
      const Sym pixels = read_pixels(flat, index);
      // A grid may be of another type than the map.
      const Sym part = weight ? pixels * unsqueeze(cast(weight, pixels.dtype()), {1}) : pixels;
      sum = sum ? sum + part : part;
      return;
    }
    for (const CoordinateTap& tap : taps[axis]) {
      const Sym step = tap.coordinate * static_cast<double>(strides[axis]);
      const Sym product = weight && tap.weight ? weight * tap.weight : weight ? weight : tap.weight;
      add(axis + 1, index ? index + step : step, product);
    }
  }
};

}  // namespace

Sym sample(Sym x, const std::vector<Sym>& positions, const Sampling& sampling) {
  const Dims dims = x.dims();
  if (dims.size() != positions.size() + 2) {
    throw ModelError("positions have {} coordinates, the map has {} spatial axes", positions.size(),
                     dims.size() - 2);
  }
  // Every choice of a tap per axis becomes nodes of its own.
  if (positions.size() > 4) throw UnsupportedError("a map of {} spatial axes is sampled", positions.size());
  const Dims spatial(dims.begin() + 2, dims.end());
  const std::int64_t pixels = checked_product(spatial, "map");
  const DType whole = pixels <= std::numeric_limits<std::int32_t>::max() ? DType::i32 : DType::i64;
  Sampler sampler{reshape(x, {dims[0], dims[1], pixels}), dense_strides(spatial), {}, Sym()};
  for (std::size_t axis = 0; axis < positions.size(); ++axis) {
    Sym position = positions[axis];
    if (sampling.mode == SampleMode::nearest && !sampling.pulls_positions)
      position = apply(Op::round, position);
    position = pull_inside(position, spatial[axis], sampling);
    std::vector<CoordinateTap> taps;
    for (const CoordinateTap& tap : taps_of(position, sampling.mode))
      taps.push_back(inside(tap, spatial[axis], sampling, whole));
    sampler.taps.push_back(std::move(taps));
  }
  sampler.add(0, Sym(), Sym());
  return sampler.sum;
}

Sym grid_sample(Sym x, Sym grid, const Sampling& sampling) {
  const int spatial = x.rank() - 2;
  if (spatial < 1 || grid.rank() != x.rank() || grid.dim(-1) != spatial)
    throw ModelError("the grid does not fit the map");
  const Dims grid_dims = grid.dims();
  const Dims out_dims(grid_dims.begin() + 1, grid_dims.end() - 1);
  const std::int64_t count = checked_product(out_dims, "grid");
  std::vector<Sym> positions;
  for (int axis = 0; axis < spatial; ++axis) {
    const std::int64_t at = spatial - 1 - axis;
    const Sym unit = reshape(slice(grid, -1, at, at + 1), {grid_dims[0], count});
    const auto extent = static_cast<double>(x.dim(axis + 2));
    positions.push_back(sampling.align_corners ? (unit + 1.0) * ((extent - 1) / 2)
                                               : ((unit + 1.0) * extent - 1.0) * 0.5);
  }
  Dims result{x.dim(0), x.dim(1)};
  result.insert(result.end(), out_dims.begin(), out_dims.end());
  return reshape(sample(x, positions, sampling), result);
}

}  // namespace sylvite
