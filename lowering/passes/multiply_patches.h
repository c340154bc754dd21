#pragma once
// Convolutions whose windows lie side by side, as matmuls: the patches of a vision transformer.

#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which conv with strides as large as its window, without pads, dilations and groups, of
/// an image of whole windows is a matmul over its patches, gathered by a transpose.
[[nodiscard]] Graph multiply_patches(const Graph& graph);

}  // namespace sylvite
