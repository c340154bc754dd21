#pragma once
// Where windows of convolutions and poolings read.

#include <cstdint>
#include <vector>

#include "lowering/algorithms/algorithm_builder.h"

namespace sylvite {

/// Strides, pads and dilations of a window operation, per spatial dim.
struct SlidingWindow {
  std::vector<std::int64_t> kernel;
  std::vector<std::int64_t> strides;
  std::vector<Extent> pads;  ///< may be open
  std::vector<std::int64_t> dilations;
};
/// Of a node that has all of them as attributes.
[[nodiscard]] SlidingWindow window_of(const Node& node);

/// Where window tap `tap` of output element `at` reads, clamped into the input, and whether it was inside.
struct Tap {
  Coordinates spatial;
  Halide::Expr is_inside;
};
[[nodiscard]] Tap tap_at(const AlgorithmBuilder& builder, const SlidingWindow& window, const Coordinates& at,
                         const Coordinates& taps, const Shape& input);

/// The domain over window taps and, if `channels` > 0, the channels of one group: r0.. are the window, innermost spatial dim
/// first, then channels; of a blocked input the channel-in-block is r0.
struct WindowDomain {
  Halide::RDom domain;
  Coordinates taps;    ///< per spatial dim
  Coordinate channel;  ///< within the group
};
[[nodiscard]] WindowDomain window_domain(const std::vector<std::int64_t>& kernel, std::int64_t channels,
                                         int block);

[[nodiscard]] inline Halide::Expr zero_of(const Halide::Type& type) {
  return Halide::Internal::make_zero(type);
}

}  // namespace sylvite
