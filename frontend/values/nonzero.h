#pragma once
// Which elements of a tensor are not zero.

#include <cstdint>
#include <vector>

#include "sylvite/tensor.h"

namespace sylvite {

/// Places of elements that are not zero, in order.
[[nodiscard]] std::vector<std::int64_t> nonzero_places(const Tensor& x);

}  // namespace sylvite
