#pragma once
// How passes change graphs: a rewriter walks the old graph in order and builds a new one. Nodes that nothing
// reads any more are dropped at the end, so a rewrite only has to point a value elsewhere.

#include <functional>
#include <optional>
#include <vector>

#include "frontend/graph/copy.h"
#include "sylvite/graph.h"

namespace sylvite {

/// A copy with changes. The new graph has the source's inputs from the start; patterns match in it, where
/// earlier rewrites have already happened. set() points readers elsewhere.
class GraphRewriter : public GraphCopier {
 public:
  explicit GraphRewriter(const Graph& source) : GraphCopier(source) { add_inputs(); }

  /// Adds a node whose single output replaces the single output of `old`, and takes its name.
  void replace(const Node& old, Op op, std::vector<ValueId> inputs, Attributes attributes = {});
};

/// Returns true when it has dealt with the node, having called set() or replace() for every output that is
/// read.
using NodeRewrite = std::function<bool(GraphRewriter&, const Node&)>;

/// Visits every node in order; those that `rewrite` leaves alone are copied. Dead nodes are dropped.
[[nodiscard]] Graph rewrite_nodes(const Graph& graph, const NodeRewrite& rewrite);

/// True when both graphs have the same nodes in the same order over the same values, names aside. Constants
/// are compared by address, so this is cheap.
[[nodiscard]] bool same_structure(const Graph& a, const Graph& b);

// Small questions that patterns ask of a graph.

/// The node that makes `id` if it is an `op`, else nullptr.
[[nodiscard]] const Node* producer_if(const Graph& graph, ValueId id, Op op);
/// The value of a floating or integer constant with one element.
[[nodiscard]] std::optional<double> scalar_constant(const Graph& graph, ValueId id);
/// True when `id` is a one-element constant within 1e-5 (relative) of `expected`.
[[nodiscard]] bool is_scalar(const Graph& graph, ValueId id, double expected);

/// The dims that a reduction folds, or searches for a place.
[[nodiscard]] Dims folded_axes(const Node& reduction);

/// A value seen as factor * base, looking through mul and div by scalars.
struct Scaled {
  ValueId base;
  double factor;
};
[[nodiscard]] Scaled scaled(const Graph& graph, ValueId id);
/// The same, looking also through floats of 16 bits that are multiplied as f32 and rounded again. The product is of the base's type.
[[nodiscard]] Scaled scaled_as_f32(const Graph& graph, ValueId id);

/// For a two-input node, calls match(first, second) and then match(second, first) until one returns true.
[[nodiscard]] bool either_order(const Node& node, const std::function<bool(ValueId, ValueId)>& match);

}  // namespace sylvite
