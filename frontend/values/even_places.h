#pragma once
// Places that are evenly apart: a gather of these is a slice.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sylvite {

/// How far each is from the one before; 1 of a single one, and 0 where they are not evenly apart, or all the same.
[[nodiscard]] inline std::int64_t step_between(const std::vector<std::int64_t>& places) {
  const std::int64_t step = places.size() > 1 ? places[1] - places[0] : 1;
  for (std::size_t i = 1; i < places.size(); ++i)
    if (places[i] - places[i - 1] != step) return 0;
  return step;
}

}  // namespace sylvite
