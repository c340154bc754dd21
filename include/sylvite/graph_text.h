#pragma once
// The text form of a Graph, which round-trips: parse_graph(graph_text(g)) has the same text.
//
//   graph resnet(%x: f32[1,3,224,224]) {
//     %w = constant f32[64,3,7,7] sha256:0123456789abcdef        large constants by hash of their bytes
//     %half = constant f32[] {0.5}                               up to 16 elements inline
//     %v1: f32[1,64,112,112]@c16 = conv(%x, %w) {dilations=[1,1], groups=1, pads=[3,3,3,3], strides=[2,2]}
//     return %v1
//   }
//
// In `return %y, %next to %past` the second output is the next value of the input %past (Graph::states), and in
// `%next over %past` it may be written over that input (Graph::overwrites).

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sylvite/graph.h"

namespace sylvite {

[[nodiscard]] std::string graph_text(const Graph& graph);

/// Finds the bytes of a large constant by its hash; nullopt makes the parser fail.
using ConstantLookup = std::function<std::optional<Tensor>(const TensorType&, const std::string& hash)>;

/// Throws ModelError with the line number. Types written in the text are checked against the ops' rules.
[[nodiscard]] Graph parse_graph(std::string_view text, const ConstantLookup& lookup = {});

}  // namespace sylvite
