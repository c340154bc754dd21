#pragma once
// Products of rows, and of pixels, of which a part is the same for many.

#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which products by weights of concats, along their depth, of which some parts are repeated for all rows of a
/// matrix, are those of the other parts, and those of what is repeated, made once; and the same of convolutions of one tap, of whose
/// channels some are the same for all pixels.
[[nodiscard]] Graph multiply_repeated(const Graph& graph);

}  // namespace sylvite
