#pragma once
// How passes change graphs: a rewriter walks the old graph in order and builds a new one. Nodes that nothing
// reads any more are dropped at the end, so a rewrite only has to point a value elsewhere.

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "sylvite/graph.h"

namespace sylvite {

/// Builds the new graph. Inputs and outputs keep their order, names and types.
class GraphRewriter {
 public:
  explicit GraphRewriter(const Graph& source);

  [[nodiscard]] const Graph& source() const { return source_; }
  /// The graph under construction; patterns match in it, where earlier rewrites have already happened.
  [[nodiscard]] Graph& graph() { return graph_; }
  /// The new value for an old one. Constants are carried over on first use. REQUIRES the producer was
  /// visited.
  [[nodiscard]] ValueId mapped(ValueId old);
  [[nodiscard]] std::vector<ValueId> mapped(const std::vector<ValueId>& old);
  /// Readers of `old` read `now` from here on. Names stay as they are.
  void set(ValueId old, ValueId now);
  /// Carries a node over unchanged.
  void copy(const Node& old);
  /// Adds a node whose single output replaces the single output of `old`.
  void replace(const Node& old, Op op, std::vector<ValueId> inputs, Attributes attributes = {});
  [[nodiscard]] Graph finish();

 private:
  const Graph& source_;
  Graph graph_;
  std::vector<ValueId> map_;
};

/// Returns true when it has dealt with the node, having called set() or replace() for every output that is
/// read.
using NodeRewrite = std::function<bool(GraphRewriter&, const Node&)>;

/// Visits every node in order; those that `rewrite` leaves alone are copied. Dead nodes are dropped.
[[nodiscard]] Graph rewrite_nodes(const Graph& graph, const NodeRewrite& rewrite);

/// The graph without nodes and constants that no output needs. Inputs stay.
[[nodiscard]] Graph without_dead_nodes(const Graph& graph);

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

/// A value seen as factor * base, looking through mul and div by scalars.
struct Scaled {
  ValueId base;
  double factor;
};
[[nodiscard]] Scaled scaled(const Graph& graph, ValueId id);

/// For a two-input node, calls match(first, second) and then match(second, first) until one returns true.
[[nodiscard]] bool either_order(const Node& node, const std::function<bool(ValueId, ValueId)>& match);

}  // namespace sylvite
