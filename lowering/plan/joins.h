#pragma once
// Concatenations that need no kernel: what makes the parts writes them side by side.

#include <cstdint>
#include <map>
#include <vector>

#include "sylvite/graph.h"

namespace sylvite {

/// Where a value lies inside another one.
struct Part {
  ValueId whole = no_value;
  std::int64_t offset = 0;  ///< bytes, a multiple of 64
};

/// `parts` holds the parts of joined concats, and concats that are the first so many parts of a larger one
/// (as in DenseNet, whose layers all read one growing value).
struct Joins {
  std::map<ValueId, Part> parts;
  IdMap<bool> is_joined;  ///< per node: a concat that needs no kernel

  [[nodiscard]] bool empty() const { return parts.empty(); }
};

/// A concat is joined when its parts, or theirs where a part is a concat along the same axis, are contiguous
/// in it (every dim stored outside the axis is 1), each is computed by a kernel, and none lies elsewhere
/// already. Graph outputs are never parts nor wholes.
[[nodiscard]] Joins find_joins(const Graph& graph);
[[nodiscard]] Joins no_joins(const Graph& graph);

}  // namespace sylvite
