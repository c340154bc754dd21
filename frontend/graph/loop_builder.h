#pragma once
// Loops of a graph under construction: what is computed for one trip becomes the body of an Op::loop.

#include <functional>
#include <optional>

#include "frontend/graph/graph_builder.h"

namespace sylvite {

/// What a trip is given: the states and a slice of each scanned input. What it leaves behind: the next states,
/// of the same types, and values to stack.
struct TripValues {
  std::vector<Sym> states;
  std::vector<Sym> slices;
};

/// Adds the operations of one trip. It may read any other value of the builder.
using LoopBody = std::function<TripValues(const TripValues&)>;

struct LoopSpec {
  std::int64_t trips = 0;
  bool is_reverse = false;  ///< from the last slice to the first, for what is scanned and stacked
  TripValues given;         ///< the states before the first trip, and what is scanned: [trips, ...]
};

/// False for two trips or fewer, for more than a million, inside another loop, and in host steps.
[[nodiscard]] bool may_loop(const GraphBuilder& builder, std::int64_t trips);
/// What a trip computes, once, as an Op::loop: the states after the last trip, and the stacked values [trips, ...].
/// Nothing where it is to be unrolled: where may_loop says so, and where `body` throws, because what needs a number
/// may find one in a trip of its own. What was added for the body stays in the graph as dead nodes that read values which
/// nothing makes: drop them (without_dead_nodes) before anything else reads the graph.
[[nodiscard]] std::optional<TripValues> try_loop(GraphBuilder& builder, const LoopSpec& spec,
                                                 const LoopBody& body);
/// try_loop, or else `body` for one trip after the other. Throws what it throws. Of no trip it asks `body` for the types of what
/// trips leave behind.
[[nodiscard]] TripValues run_loop(GraphBuilder& builder, const LoopSpec& spec, const LoopBody& body);

/// What is computed of given values, as a graph of its own, and what it reads beside them: its last inputs.
struct OutlinedBody {
  Graph graph;
  std::vector<Sym> captured;
};
/// Throws what `body` throws. It leaves dead nodes, as try_loop does.
[[nodiscard]] OutlinedBody outline_body(GraphBuilder& builder, const std::vector<Sym>& given,
                                        const std::function<std::vector<Sym>(const std::vector<Sym>&)>& body);

/// [0, ...]: none of values like this one, along a new first axis.
[[nodiscard]] Sym stack_none(GraphBuilder& builder, const Sym& like);
/// The values along a new axis. Throws UnsupportedError when there are none.
[[nodiscard]] Sym stack(std::vector<Sym> values, std::int64_t axis);

}  // namespace sylvite
