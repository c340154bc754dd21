#pragma once

#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which sums of products of two values, each of which is repeated along dims of the other, are products of
/// matrices: as loops they read both again for every result, where tensor cores have tiles.
[[nodiscard]] Graph multiply_sums(const Graph& graph);

}  // namespace sylvite
