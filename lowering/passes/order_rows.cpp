#include <algorithm>
#include <map>
#include <optional>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/column_work.h"
#include "lowering/passes/pass_list.h"
#include "lowering/plan/fusion_rules.h"

namespace sylvite {
namespace {

/// Left operand of a product: `source` transposed by `perm`, then reshaped so that the first `row_dims` dims
/// are rows and the rest is the depth.
struct Transposed {
  ValueId source = no_value;
  Dims perm;
  std::size_t row_dims = 0;

  [[nodiscard]] Dims leading() const {
    return {perm.begin(), perm.begin() + static_cast<std::ptrdiff_t>(row_dims)};
  }
  [[nodiscard]] Dims sorted_leading() const {
    Dims sorted = leading();
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }
};

std::optional<Transposed> transposed_rows(const Graph& graph, ValueId x) {
  const Dims dims = graph.type(x).dims();
  const Node* reshape = producer_if(graph, x, Op::reshape);
  const ValueId view = reshape != nullptr ? reshape->inputs[0] : x;
  const Node* transpose = producer_if(graph, view, Op::transpose);
  if (transpose == nullptr || dims.empty()) return std::nullopt;
  Transposed result{transpose->inputs[0], transpose->attributes.integers("perm"), 0};
  const Dims from = graph.type(view).dims();
  const std::int64_t rows = product(dims, 0, dims.size() - 1);
  while (result.row_dims < from.size() && product(from, result.row_dims, from.size()) != dims.back())
    ++result.row_dims;
  const bool splits = result.row_dims > 0 && product(from, 0, result.row_dims) == rows;
  return splits && result.leading() != result.sorted_leading() ? std::optional(result) : std::nullopt;
}

/// A product in the order of its operand's rows, and the order that its readers expect.
struct Ordered {
  ValueId product = no_value;
  Dims back;
};

class RowOrderer {
 public:
  explicit RowOrderer(const Graph& graph) : graph_(graph), readers_(graph.uses()) {}

  bool rewrite(GraphRewriter& rewriter, const Node& node) {
    if (node.outputs.size() != 1 || graph_.type(node.outputs[0]).element_count() == 0) return false;
    if (has_trait(node.op, OpTrait::matmul)) return order_matmul(rewriter, node);
    if (has_trait(node.op, OpTrait::pointwise)) return order_pointwise(rewriter, node);
    return false;
  }

 private:
  [[nodiscard]] bool is_reordered(ValueId id) const {
    const std::vector<NodeId>& readers = readers_[id];
    if (readers.empty() ||
        std::find(graph_.outputs.begin(), graph_.outputs.end(), id) != graph_.outputs.end())
      return false;
    return std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
      const Node& node = graph_.node(reader);
      if (node.op == Op::transpose || node.op == Op::attention) return true;
      const bool passes = role_of(node) == Role::view || works_by_columns(graph_, node, id);
      return passes && node.outputs.size() == 1 && is_reordered(node.outputs[0]);
    });
  }

  /// Do readers of a value find it where it lies in another order? What follows it may merge dims that do not lie together,
  /// as windows of an image do: then it is copied.
  [[nodiscard]] bool is_read_in_place(ValueId id, const Dims& ordered, const Dims& back) const {
    return std::ranges::all_of(readers_[id], [&](NodeId reader) {
      const Node& node = graph_.node(reader);
      if (works_by_columns(graph_, node, id)) return is_read_in_place(node.outputs[0], ordered, back);
      const ValueId read = node.op == Op::reshape ? node.outputs[0] : id;
      return reshape_ahead(ordered, back, graph_.type(read).dims()).has_value();
    });
  }

  void set(GraphRewriter& rewriter, const Node& node, const Ordered& ordered) {
    Graph& graph = rewriter.graph();
    const ValueId transposed = add_transpose(graph, ordered.product, ordered.back);
    const ValueId result = add_reshape(graph, transposed, graph_.type(node.outputs[0]).dims());
    rewriter.set(node.outputs[0], result);
    ordered_[node.outputs[0]] = ordered;
  }

  bool order_matmul(GraphRewriter& rewriter, const Node& node) {
    Graph& graph = rewriter.graph();
    std::vector<ValueId> inputs = rewriter.mapped(node.inputs);
    const ValueId weight = inputs[1];
    const std::optional<Transposed> x = transposed_rows(graph, inputs[0]);
    if (!x || graph.type(weight).rank() != 2 || !is_reordered(node.outputs[0])) return false;
    const Dims source = graph.type(x->source).dims();
    Dims rows;
    Dims perm = x->sorted_leading();
    for (const std::int64_t axis : perm) rows.push_back(source[static_cast<std::size_t>(axis)]);
    const Dims sorted = perm;
    perm.insert(perm.end(), x->perm.begin() + static_cast<std::ptrdiff_t>(x->row_dims), x->perm.end());
    rows.push_back(graph.type(weight).dims()[0]);
    Dims back;
    for (const std::int64_t axis : x->leading())
      back.push_back(std::find(sorted.begin(), sorted.end(), axis) - sorted.begin());
    back.push_back(static_cast<std::int64_t>(sorted.size()));
    const std::int64_t width = graph.type(weight).dims()[1];
    Dims result = rows;
    result.back() = width;
    if (width > rows.back() && !is_read_in_place(node.outputs[0], result, back)) return false;
    inputs[0] = add_reshape(graph, add_transpose(graph, x->source, perm), rows);
    const Ordered ordered{graph.add(node.op, inputs, {}, node.name), back};
    set(rewriter, node, ordered);
    return true;
  }

  bool order_pointwise(GraphRewriter& rewriter, const Node& node) {
    const auto found = std::find_if(node.inputs.begin(), node.inputs.end(),
                                    [&](ValueId id) { return ordered_.contains(id); });
    if (found == node.inputs.end() || !works_by_columns(graph_, node, *found)) return false;
    Graph& graph = rewriter.graph();
    const Ordered before = ordered_.at(*found);
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) {
      const ValueId now = rewriter.mapped(id);
      inputs.push_back(id == *found ? before.product
                                    : add_reshape(graph, now, {graph.type(now).element_count()}));
    }
    set(rewriter, node, {graph.add(node.op, inputs, node.attributes, node.name), before.back});
    return true;
  }

  const Graph& graph_;
  IdMap<std::vector<NodeId>> readers_;  ///< per value
  std::map<ValueId, Ordered> ordered_;  ///< by value of the old graph
};

}  // namespace

Graph order_rows(const Graph& graph) {
  RowOrderer orderer(graph);
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return orderer.rewrite(rewriter, node); });
}

}  // namespace sylvite
