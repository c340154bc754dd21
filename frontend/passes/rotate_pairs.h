#pragma once

#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which a concat of parts, some of which are negations of their own, joins what these negate, times a constant
/// of signs, or, where the parts are each n-th element of the same rows, the rows in another order.
[[nodiscard]] Graph rotate_pairs(const Graph& graph);

}  // namespace sylvite
