#pragma once
// Next values of states that are the last ones but for entries along an axis, spelled without a scatter in their order.

#include <vector>

#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which the outputs of these pairs are write_elements of their inputs, where nothing else reads those:
///
///   where(iota == place, new, past)                  place: one number; new: one entry along the axis of the iota. Where place
///                                                    is outside, what is there already is written
///   transpose(scatter_nd(transpose(past), i, new))   the transposes bring an axis to the front and back; i: indices along it
///   concat(past[..., :a], new, past[..., b:])        at most a quarter is new
[[nodiscard]] Graph write_entries(const Graph& graph, const std::vector<State>& pairs);

}  // namespace sylvite
