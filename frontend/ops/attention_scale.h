#pragma once
// What attention multiplies its scores by.

#include <cmath>
#include <cstdint>

#include "sylvite/attributes.h"

namespace sylvite {

/// Of attention, or its gradient, with these attributes and heads of `depth` elements.
[[nodiscard]] inline double attention_scale(const Attributes& attributes, std::int64_t depth) {
  const double given = attributes.real("scale");
  return given == 0 ? 1 / std::sqrt(static_cast<double>(depth)) : given;
}

}  // namespace sylvite
