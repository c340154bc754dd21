#pragma once
// Neighbouring axes that a kernel treats alike as one, so that it serves any sizes of both by one extent.

#include "lowering/plan/kernel.h"

namespace sylvite {

/// The kernel with its values as they lie in memory, of the same ranks: where all its operations treat two neighbouring axes
/// alike, as rows of a norm or pixels of a convolution by single ones, the first has one element and the second all of both. The
/// kernel itself where there are none.
[[nodiscard]] Kernel with_merged_axes(const Kernel& kernel);

/// Is `merged` what with_merged_axes may make of `type`?
[[nodiscard]] bool is_merged_of(const TensorType& merged, const TensorType& type);

}  // namespace sylvite
