#pragma once
// States that grow with every run, as caches do that a concat extends, as states of one size: room for the longest, and how
// long they are.
//
//   before: next = concat(past, new)                 past [heads, length, 64], next [heads, length+1, 64]
//           y = softmax(q @ next^T) @ next
//   after:  next = scatter_elements(past, at, new)   past, next [heads, capacity, 64]; at = length, everywhere
//           y = softmax(where(iota < length+1, q @ next^T, -inf)) @ next
//           length, a state of its own, becomes length+1
//
// In general a value whose extents depend on the length becomes one with the extents of the greatest length, of which only
// the first elements count. What folds over such an extent is given neutral elements behind those.

#include <cstdint>
#include <string>
#include <vector>

#include "sylvite/graph.h"

namespace sylvite {

/// What is known of a model whose states grow.
struct Growth {
  std::string length;         ///< the symbol, and the name of the state that holds its value
  std::int64_t capacity = 0;  ///< of every state that grows, in entries
  std::int64_t added = 0;     ///< entries that a run adds
  bool operator==(const Growth&) const = default;
};

/// The graph at the greatest length, capacity - added. `graph` has no symbol but the length; `states` are pairs of its inputs
/// and outputs, whose types may depend on it. The result has one more input and output, the length, and these states.
/// What is behind the first elements of a state is taken to be finite: zeros, or what earlier runs left.
/// REQUIRES growth.added <= growth.capacity. Throws UnsupportedError that names the operation for which that cannot be done.
[[nodiscard]] Graph capacity_form(const Graph& graph, const std::vector<State>& states, const Growth& growth);

}  // namespace sylvite
