#pragma once
// Numbers for the symbols of a graph.

#include <vector>

#include "sylvite/graph.h"

namespace sylvite {

/// The values of symbols that inputs of these shapes give. Throws InputError, which names the input, the dimension,
/// the extent and what was expected, for a shape that does not fit, an extent outside its range, or two extents
/// that disagree. REQUIRES that each symbol is by itself an extent of an input.
[[nodiscard]] SymbolValues read_symbols(const Graph& graph, const std::vector<Dims>& input_shapes);

/// The graph with numbers for its symbols, and constants for its extents. Throws UnsupportedError, which names the
/// guard, for values for which the graph does not mean what its model means. REQUIRES a value for every symbol.
[[nodiscard]] Graph bind_symbols(const Graph& graph, const SymbolValues& binding);

}  // namespace sylvite
