#pragma once
// The right operand of a convolution: what its taps see, packed into panels of output positions.

#include <cstdint>

#include "frontend/quick/window.h"

namespace sylvite::quick {

/// `count` of something, from the first on.
struct Part {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Packs output positions `positions` into panels [depth.count, panel], one behind another. Row k of a panel is what tap
/// (depth.first + k) of the channels of `image` sees, channels outermost; zero outside of the image. The last panel may keep
/// columns that nobody writes.
void pack_patches(const Window& window, const float* image, Part depth, Part positions, std::int64_t panel,
                  float* panels);

}  // namespace sylvite::quick
