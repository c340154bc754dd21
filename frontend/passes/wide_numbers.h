#pragma once
// What 16 bits would spoil: positions and coordinates, of which the integer counts, and exponents, whose error is that of the power. Internal to the passes.

#include "sylvite/graph.h"
#include "sylvite/id_map.h"

namespace sylvite {

/// Per node: is its result f32 made of integers of more than 8 bits and of constants, by pointwise work, moves and outer
/// products? Such are the angles of positions, whose sines 16 bits would make those of other positions.
[[nodiscard]] IdMap<bool> made_of_integers(const Graph& graph);

/// Per node: is its result f32 that becomes such an integer, at first hand or by pointwise work, moves and sums of coordinates, and
/// that no product reads? Such are places to read. So are the distances of places from whole numbers, and what these are made of.
[[nodiscard]] IdMap<bool> become_integers(const Graph& graph);

/// Per node: is its result f32, a running sum or a logarithm, or made of one by arithmetic, choices and moves, and do only powers
/// of e read what becomes of it? So are these powers. Such are decays along time, and what rows and columns are divided by in turn:
/// a sum of 256 logarithms has an error of a half in bf16, and differences of two are what is meant.
[[nodiscard]] IdMap<bool> become_powers(const Graph& graph);

}  // namespace sylvite
