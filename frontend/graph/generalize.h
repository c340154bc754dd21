#pragma once
// Graphs of one model at several sizes as one graph with a symbol for the size.

#include <cstdint>
#include <string>
#include <vector>

#include "sylvite/graph.h"

namespace sylvite {

/// Graph number i is the model where the symbol is values[i]; nothing in it was evaluated (GraphBuilder::keep_nodes), so that
/// all have the same nodes. Extents, extents in attributes and integer constants that differ are linear in the symbol, or
/// the model is refused; the type rules of the operations must then agree for every value from `info.low` to `info.high`.
/// Constants that differ become Op::extents. REQUIRES three values or more, each once.
/// Throws UnsupportedError that says which operation stands in the way.
[[nodiscard]] Graph generalize(const std::vector<Graph>& graphs, const std::string& symbol,
                               const std::vector<std::int64_t>& values, const SymbolInfo& info);

}  // namespace sylvite
