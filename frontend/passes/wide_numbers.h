#pragma once
// What 16 bits would spoil: positions and coordinates, of which the integer counts. Internal to the passes.

#include "sylvite/graph.h"
#include "sylvite/id_map.h"

namespace sylvite {

/// Per node: is its result f32 made of integers of more than 8 bits and of constants, by pointwise work, moves and outer
/// products? Such are the angles of positions, whose sines 16 bits would make those of other positions.
[[nodiscard]] IdMap<bool> made_of_integers(const Graph& graph);

/// Per node: is its result f32 that becomes such an integer, at first hand or by pointwise work, moves and sums of coordinates, and
/// that no product reads? Such are places to read. So are the distances of places from whole numbers, and what these are made of.
[[nodiscard]] IdMap<bool> become_integers(const Graph& graph);

}  // namespace sylvite
