#include "lowering/algorithms/window_taps.h"

#include "base/rounding.h"

namespace sylvite {

using Halide::Expr;

SlidingWindow window_of(const Node& node) {
  return {node.attributes.integers("kernel"), node.attributes.integers("strides"),
          node.attributes.extents("pads"), node.attributes.integers("dilations")};
}

Tap tap_at(const AlgorithmBuilder& builder, const SlidingWindow& window, const Coordinates& at,
           const Coordinates& taps, const Shape& input) {
  Tap result{{}, Halide::Internal::const_true()};
  for (std::size_t s = 0; s < window.kernel.size(); ++s) {
    const Expr position = at[s + 2].full * static_cast<int>(window.strides[s]) +
                          taps[s].full * static_cast<int>(window.dilations[s]) -
                          builder.extent(window.pads[s]);
    const Extent& low = window.pads[s];
    const Extent& high = window.pads[s + window.kernel.size()];
    const bool starts_ahead = low != 0, may_leave = starts_ahead || high != 0;
    result.spatial.emplace_back(may_leave ? Halide::clamp(position, 0, builder.extent(input[s + 2] - 1))
                                          : position);
    if (starts_ahead) result.is_inside = result.is_inside && position >= 0;
    if (may_leave) result.is_inside = result.is_inside && position < builder.extent(input[s + 2]);
  }
  return result;
}

WindowDomain window_domain(const std::vector<std::int64_t>& kernel, std::int64_t channels, int block) {
  std::vector<std::int64_t> extents;
  const bool blocked = channels > 0 && block > 0;
  if (blocked) extents.push_back(block);
  extents.insert(extents.end(), kernel.rbegin(), kernel.rend());
  if (channels > 0) extents.push_back(blocked ? ceil_div(channels, block) : channels);
  WindowDomain result{reduction_domain(extents), {}, {}};
  const int first = blocked ? 1 : 0;
  const int spatial = static_cast<int>(kernel.size());
  for (int s = 0; s < spatial; ++s) result.taps.emplace_back(Expr(result.domain[first + spatial - 1 - s]));
  if (channels == 0) return result;
  const Expr outer = result.domain[first + spatial];
  if (!blocked) {
    result.channel = Coordinate(outer);
    return result;
  }
  result.channel = Coordinate::split(outer, Expr(result.domain[0]), block, channels);
  if (channels % block != 0)
    result.domain.where(outer * block + result.domain[0] < static_cast<int>(channels));
  return result;
}

}  // namespace sylvite
