#pragma once
// States that grow with every run, where capacity_form cannot be had: the graph at one length, which reads the first entries
// of states that have room for the longest, and writes them whole.
//
//   before: next = concat(past, new)                              past [heads, 5, 64], next [heads, 6, 64]
//   after:  next = pad(concat(slice(state, 0..5), new), zeros)    state, next [heads, capacity, 64]
//           length, a state of its own, becomes 6

#include <vector>

#include "frontend/graph/capacity_form.h"

namespace sylvite {

/// `graph` is the model where its states have `length` entries; `states` are pairs of its inputs and outputs. The result has
/// one more input and output, the length, and these states, as capacity_form has. Throws UnsupportedError where a next value is
/// not its state with growth.added entries more, along one or more of its dims.
[[nodiscard]] Graph length_form(const Graph& graph, const std::vector<State>& states, const Growth& growth,
                                std::int64_t length);

}  // namespace sylvite
