#pragma once
// Next values of states that are the last ones but for entries along an axis, spelled without a scatter in their order.

#include <vector>

#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which the outputs of these pairs are write_elements of their inputs, where nothing else reads those:
///
///   where(iota == place, new, past)                  place: one number; new: one entry along the axis of the iota. Where place
///                                                    is outside, what is there already is written
///   transpose(scatter_nd(transpose(past), i, new))   the transposes bring axes to the front and back; i: indices along them
///   concat(past[..., :a], new, past[..., b:])        a small write, as the scatter is
[[nodiscard]] Graph write_entries(const Graph& graph, const std::vector<State>& pairs, bool on_device);

/// Does the scatter replace so little that it is sooner done by a thread for each element of a slice, one slice after another, than
/// by a kernel that writes everything?
[[nodiscard]] bool is_small_write(const Graph& graph, const Node& scatter, bool on_device);

}  // namespace sylvite
