#pragma once
// Checks that a Graph is well formed: a table of named rules. On after every pass in tests and debug builds.

#include "sylvite/graph.h"

namespace sylvite {

/// Throws InternalError listing every broken rule with the node or value it concerns.
void verify(const Graph& graph);

}  // namespace sylvite
