#pragma once
// RoiAlign of regions and images that are known, by loops: a host step has a number of samples for each region.

#include <cstdint>

#include "sylvite/tensor.h"

namespace sylvite {

struct RoiSettings {
  std::int64_t height, width;
  double scale;
  bool is_half_pixel, takes_largest;
  std::int64_t ratio;  ///< samples of a bin along an axis; 0: as many as it has pixels
};

/// How many samples a bin of a region takes along an axis, between two corners; none of no extent, whose bins are 0. Throws ModelError for more than 4096.
[[nodiscard]] std::int64_t samples_of_bin(double low, double high, std::int64_t bins,
                                          const RoiSettings& settings);

/// Bilinear samples folded into bins: [regions, channels, height, width]. Of f32 images [images, channels, rows, columns] and
/// regions of four corners, and the image of each. Throws ModelError for images that are not there.
[[nodiscard]] Tensor align_known_regions(const Tensor& images, const Tensor& regions, const Tensor& batch,
                                         const RoiSettings& settings);

}  // namespace sylvite
