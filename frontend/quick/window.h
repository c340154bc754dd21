#pragma once
// The spatial dims of convolutions and pooling, padded in front to three: depth, height, width.

#include <algorithm>
#include <array>

#include "sylvite/attributes.h"
#include "sylvite/types.h"

namespace sylvite::quick {

/// Outputs [begin, end) of an axis.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct WindowAxis {
  std::int64_t input = 1, output = 1, kernel = 1, stride = 1, dilation = 1, low = 0, high = 0;

  /// Where tap `tap` of output `at` reads; outside of the input it reads zeros, or nothing.
  [[nodiscard]] std::int64_t position(std::int64_t at, std::int64_t tap) const {
    return at * stride - low + tap * dilation;
  }
  [[nodiscard]] bool is_inside(std::int64_t place) const { return place >= 0 && place < input; }
  /// Outputs whose tap `tap` is inside.
  [[nodiscard]] Range inside(std::int64_t tap) const {
    const std::int64_t first = low - tap * dilation;  // of the input, counted in steps of the output
    const std::int64_t begin = first <= 0 ? 0 : (first + stride - 1) / stride;
    const std::int64_t last = input - 1 + first;
    const std::int64_t end = last < 0 ? 0 : std::min(output, last / stride + 1);
    return {std::min(begin, end), end};
  }
};

struct Window {
  std::array<WindowAxis, 3> axes;

  [[nodiscard]] std::int64_t inputs() const { return axes[0].input * axes[1].input * axes[2].input; }
  [[nodiscard]] std::int64_t outputs() const { return axes[0].output * axes[1].output * axes[2].output; }
  [[nodiscard]] std::int64_t taps() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
};

/// Of tensors [N, C, spatial]; `kernel` has the spatial dims alone.
[[nodiscard]] inline Window make_window(const Dims& input, const Dims& output, const Dims& kernel,
                                        const Attributes& attributes) {
  Window window;
  const std::size_t rank = kernel.size();
  const Dims& pads = attributes.integers("pads");
  for (std::size_t i = 0; i < rank; ++i)
    window.axes[3 - rank + i] = {input[2 + i],
                                 output[2 + i],
                                 kernel[i],
                                 attributes.integers("strides")[i],
                                 attributes.integers("dilations")[i],
                                 pads[i],
                                 pads[rank + i]};
  return window;
}

/// Calls visit(y, from, tap) for each row of taps that is inside for line `line` of the output (all but its last axis): `from`
/// is the row of the plane that they read, `tap` the first of them.
template <typename Visit>
void for_rows(const Window& window, const float* plane, std::int64_t line, const Visit& visit) {
  const auto& [z_axis, y_axis, x_axis] = window.axes;
  for (std::int64_t kz = 0; kz < z_axis.kernel; ++kz) {
    const std::int64_t z = z_axis.position(line / y_axis.output, kz);
    if (!z_axis.is_inside(z)) continue;
    for (std::int64_t ky = 0; ky < y_axis.kernel; ++ky) {
      const std::int64_t y = y_axis.position(line % y_axis.output, ky);
      if (y_axis.is_inside(y))
        visit(plane + (z * y_axis.input + y) * x_axis.input, (kz * y_axis.kernel + ky) * x_axis.kernel);
    }
  }
}

/// Calls combine(to[x], from[...], tap) for each x of a row of the output, for every tap along x that is inside.
template <typename Combine>
void for_taps(const WindowAxis& axis, const float* from, float* to, const Combine& combine) {
  for (std::int64_t tap = 0; tap < axis.kernel; ++tap) {
    const Range range = axis.inside(tap);
    const float* first = from + axis.position(0, tap);
    if (axis.stride == 1)
      for (std::int64_t x = range.begin; x < range.end; ++x) combine(to[x], first[x], tap);
    else
      for (std::int64_t x = range.begin; x < range.end; ++x) combine(to[x], first[x * axis.stride], tap);
  }
}

}  // namespace sylvite::quick
