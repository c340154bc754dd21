// Of a matrix of weights what meets zeros or makes what nobody reads is cut off:
//   matmul(pad(x), W)    ->  matmul(x, rows of W)       zeros along the depth
//   slice(matmul(x, W))  ->  matmul(x, columns of W)    nothing else reads the product
// Transforms of signals that are filled up with zeros are such, and so are those of which a part is kept.

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/passes/padding.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

bool multiplies_weights(const Graph& graph, const Node& node) {
  return node.op == Op::matmul && graph.is_constant(node.inputs[1]) && graph.type(node.inputs[1]).rank() == 2;
}

/// The matrix's places of one dim from `start` on.
ValueId cut_of(Graph& graph, ValueId weight, std::size_t axis, std::int64_t start, std::int64_t size,
               std::int64_t step) {
  Dims starts = {0, 0}, sizes = graph.type(weight).dims(), steps = {1, 1};
  starts[axis] = start, sizes[axis] = size, steps[axis] = step;
  return graph.add(Op::slice, {weight}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
}

class Trimmer {
 public:
  explicit Trimmer(const Graph& graph)
      : graph_(graph), uses_(graph.uses()), is_output_(graph.values().size(), false) {
    for (const ValueId output : graph.outputs) is_output_[output] = true;
  }

  bool rewrite(GraphRewriter& rewriter, const Node& node) const {
    return drop_rows(rewriter, node) || drop_columns(rewriter, node);
  }

 private:
  static bool drop_rows(GraphRewriter& rewriter, const Node& node) {
    if (!multiplies_weights(rewriter.source(), node)) return false;
    Graph& graph = rewriter.graph();
    ValueId x = rewriter.mapped(node.inputs[0]);
    Dims dims = graph.type(x).dims();
    while (const Node* reshape = producer_if(graph, x, Op::reshape)) x = reshape->inputs[0];
    const Node* const pad = padding_of(graph, x);
    if (pad == nullptr || !has_zeros(graph, *pad)) return false;
    const ValueId given = pad->inputs[0];
    const Dims low = pad->attributes.integers("low"), high = pad->attributes.integers("high");
    Dims padded = graph.type(x).dims(), own = graph.type(given).dims();
    while (padded.size() > 1 && padded.back() == 1 && own.back() == 1) padded.pop_back(), own.pop_back();
    const std::size_t axis = padded.size() - 1;
    const auto is_apart = [&](std::size_t d) { return d == axis || (low[d] == 0 && high[d] == 0); };
    for (std::size_t d = 0; d < low.size(); ++d)
      if (!is_apart(d)) return false;
    if (padded.back() != dims.back() || low[axis] < 0 || high[axis] < 0 || own.back() == 0) return false;
    dims.back() = own.back();
    const ValueId rows = cut_of(graph, rewriter.mapped(node.inputs[1]), 0, low[axis], own.back(), 1);
    rewriter.replace(node, Op::matmul, {add_reshape(graph, given, dims), rows}, node.attributes);
    return true;
  }

  /// The value that only `id` is a view of, with what lies along its last dim: else `id` itself.
  [[nodiscard]] ValueId viewed(ValueId id) const {
    const std::int64_t last = graph_.type(id).dims().back();
    ValueId found = id;
    for (const Node* reshape = producer_if(graph_, id, Op::reshape);
         reshape != nullptr && is_own(reshape->inputs[0]);
         reshape = producer_if(graph_, reshape->inputs[0], Op::reshape)) {
      const Dims dims = graph_.type(reshape->inputs[0]).dims();
      if (!dims.empty() && dims.back() == last) found = reshape->inputs[0];
    }
    return found;
  }
  [[nodiscard]] bool is_own(ValueId id) const { return !is_output_[id] && uses_[id].size() == 1; }

  bool drop_columns(GraphRewriter& rewriter, const Node& node) const {
    if (node.op != Op::slice || graph_.type(node.outputs[0]).element_count() == 0) return false;
    if (!is_own(node.inputs[0])) return false;
    const ValueId made = viewed(node.inputs[0]);
    const Node* const product = producer_if(graph_, made, Op::matmul);
    if (product == nullptr || !multiplies_weights(graph_, *product)) return false;
    const Dims whole = graph_.type(node.inputs[0]).dims(), kept = graph_.type(node.outputs[0]).dims();
    const Dims starts = node.attributes.integers("starts"), steps = node.attributes.integers("steps");
    for (std::size_t d = 0; d + 1 < whole.size(); ++d)  // a slice of all may turn them
      if (whole[d] != kept[d] || starts[d] != 0) return false;
    Graph& graph = rewriter.graph();
    const ValueId columns =
        cut_of(graph, rewriter.mapped(product->inputs[1]), 1, starts.back(), kept.back(), steps.back());
    const ValueId y = graph.add(Op::matmul, {rewriter.mapped(product->inputs[0]), columns},
                                product->attributes, product->name);
    rewriter.set(node.outputs[0], add_reshape(graph, y, kept));
    return true;
  }

  const Graph& graph_;
  IdMap<std::vector<NodeId>> uses_;  ///< per value
  IdMap<bool> is_output_;            ///< per value
};

}  // namespace

Graph trim_products(const Graph& graph) {
  const Trimmer trimmer(graph);
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return trimmer.rewrite(rewriter, node); });
}

}  // namespace sylvite
