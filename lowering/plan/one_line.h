#pragma once
// Images as one line: work that looks at each pixel by itself serves images of any width and height by one extent.

#include <optional>

#include "lowering/plan/kernel.h"

namespace sylvite {

/// The kernel of a convolution by windows of one pixel and of pointwise work around it, with its images [N, C, H, W] as
/// [N, C, 1, H * W], which lie in memory alike. nullopt for other kernels, and for images of one line.
[[nodiscard]] std::optional<Kernel> as_one_line(const Kernel& kernel);
/// The same, or the kernel itself.
[[nodiscard]] Kernel in_one_line(const Kernel& kernel);

/// Is `line` the type that as_one_line gives an `image`?
[[nodiscard]] bool is_one_line_of(const TensorType& line, const TensorType& image);

}  // namespace sylvite
