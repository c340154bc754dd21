#pragma once
// A model at other sizes, as it would be had its file left an extent open.

#include <vector>

#include "sylvite/graph.h"

namespace sylvite::fuzz {

/// The graph with one extent of its inputs replaced wherever it stands, in attributes too; one graph for each extent
/// for which the result means something.
[[nodiscard]] std::vector<Graph> resized_graphs(const Graph& graph);

}  // namespace sylvite::fuzz
