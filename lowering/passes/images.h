#pragma once
// What passes before assign_layouts know of the layouts that it gives where image_layout is channels_last.

#include "sylvite/graph.h"
#include "sylvite/id_map.h"

namespace sylvite {

/// Images of a type and of extents that kernels take with their channels innermost: rows of odd lengths cannot be read in
/// vectors. `tf32`: of f32, too.
[[nodiscard]] bool may_lie_innermost(const TensorType& type, bool tf32);

/// Per value: a convolution's result that may lie so, or one that pointwise work and pooling make of such.
[[nodiscard]] IdMap<bool> innermost_images(const Graph& graph, bool tf32);

/// The tensor with zeros behind the old elements of each dim. REQUIRES dims no smaller than its own.
[[nodiscard]] Tensor with_zeros_behind(const Tensor& tensor, const Dims& dims);

}  // namespace sylvite
