#pragma once
// What a program launches on a device, with numbers that are expressions of the sizes.

#include <cstddef>
#include <vector>

#include "runtime/export/fitted_numbers.h"
#include "runtime/export/launch_samples.h"

namespace sylvite {

/// Of launch `index` of the plan. Throws UnsupportedError where it differs from size to size in more than numbers, or in one that
/// has no expression.
[[nodiscard]] std::vector<ExportedDeviceLaunch> exported_launches(FittedNumbers& numbers, std::size_t index,
                                                                  const WeightPlaces& weights,
                                                                  const SampledCode& device);

}  // namespace sylvite
