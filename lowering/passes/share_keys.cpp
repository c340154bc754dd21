// Before: y = attention(q, reshape(broadcast_to(k)), reshape(broadcast_to(v)))   of 8 heads, k and v of 2 that are repeated 4 times
// After:  y = reshape(attention(reshape(q), k, v))   q [batch, 2, 4, rows, depth], k and v [batch, 2, 1, rows, depth]
// With one head of keys for all, nothing is reshaped.

#include "lowering/passes/share_keys.h"

#include <algorithm>
#include <optional>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"

namespace sylvite {
namespace {

/// The heads of an attention: groups of `share`, each of which reads the same keys and values.
struct Groups {
  std::int64_t count = 1, share = 1;
};

/// The dim that a broadcast repeats; nothing where it repeats several, or none.
std::optional<std::size_t> repeated_dim(const Dims& from, const Dims& to) {
  if (from.size() != to.size()) return std::nullopt;
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (from[i] == to[i]) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

/// What repeats, behind it, [..., heads, rows, depth] for neighbouring heads, and for how many; nothing where it is not so.
struct Repeated {
  ValueId source = no_value;
  std::int64_t share = 1;
};
std::optional<Repeated> repeated(const Graph& graph, ValueId id) {
  const Dims dims = graph.type(id).dims();
  if (dims.size() < 4) return std::nullopt;
  const Node* reshape = producer_if(graph, id, Op::reshape);
  const Node* repeat = producer_if(graph, reshape == nullptr ? id : reshape->inputs[0], Op::broadcast_to);
  if (repeat == nullptr) return std::nullopt;
  const Dims from = graph.type(repeat->inputs[0]).dims(), to = graph.type(repeat->outputs[0]).dims();
  const std::optional<std::size_t> at = repeated_dim(from, to);
  if (!at || *at + 2 >= to.size() || product(to, *at + 1, to.size() - 2) != 1 ||
      !std::equal(to.end() - 2, to.end(), dims.end() - 2) || dims[dims.size() - 3] % to[*at] != 0)
    return std::nullopt;
  return Repeated{repeat->inputs[0], to[*at]};
}

/// [..., heads, rows, columns] with the heads as [groups, share], or one head as two dims.
Dims in_groups(Dims dims, const Groups& groups) {
  if (groups.count == 1 || dims.size() < 3) return dims;
  const auto heads = dims.end() - 3;
  const bool is_one = *heads == 1;
  *heads = is_one ? 1 : groups.count;
  dims.insert(dims.end() - 2, is_one ? 1 : groups.share);
  return dims;
}

/// Of [..., heads, rows, columns], for dims in which heads are two.
Dims order_in_groups(const Dims& perm) {
  const auto heads = static_cast<std::int64_t>(perm.size()) - 3;
  Dims order;
  for (const std::int64_t dim : perm) {
    order.push_back(dim > heads ? dim + 1 : dim);
    if (dim == heads) order.push_back(dim + 1);
  }
  return order;
}

class KeySharer {
 public:
  KeySharer(const Graph& graph, const LoweringOptions& options)
      : graph_(graph), options_(options), readers_(graph.uses()) {}

  Graph run() {
    return rewrite_nodes(graph_, [&](GraphRewriter& rewriter, const Node& node) {
      return node.op == Op::attention && share(rewriter, node);
    });
  }

 private:
  [[nodiscard]] bool is_read_by_attention_alone(ValueId id) const {
    return std::ranges::all_of(readers_[id],
                               [&](NodeId reader) { return graph_.node(reader).op == Op::attention; });
  }

  bool share(GraphRewriter& rewriter, const Node& node) {
    const std::optional<Repeated> k = repeated(graph_, node.inputs[1]), v = repeated(graph_, node.inputs[2]);
    if (!k || !v || k->share != v->share || !is_read_by_attention_alone(node.inputs[1]) ||
        !is_read_by_attention_alone(node.inputs[2]))
      return false;
    const Dims q = graph_.type(node.inputs[0]).dims(), out = graph_.type(node.outputs[0]).dims();
    const std::int64_t heads = graph_.type(node.inputs[1]).dims()[q.size() - 3];
    if (q.size() < 4 || q.size() != out.size() || q[q.size() - 3] != heads) return false;
    const Groups groups = {heads / k->share, k->share};
    if (!has_template(node, groups)) return false;
    Graph& graph = rewriter.graph();
    std::vector<ValueId> inputs = {rewriter.mapped(node.inputs[0]), rewriter.mapped(k->source),
                                   rewriter.mapped(v->source)};
    if (node.inputs.size() > 3) inputs.push_back(rewriter.mapped(node.inputs[3]));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i] != no_value) inputs[i] = add_reshape(graph, inputs[i], dims_of(node, i, groups));
    const ValueId result = graph.add(Op::attention, inputs, node.attributes, node.name);
    rewriter.set(node.outputs[0], as_it_was(graph, node, result, groups));
    return true;
  }

  /// Of an input of the attention that shares.
  [[nodiscard]] Dims dims_of(const Node& node, std::size_t input, const Groups& groups) const {
    Dims dims = in_groups(graph_.type(node.inputs[input]).dims(), groups);
    if (input == 1 || input == 2) dims[dims.size() - 3] = 1;
    return dims;
  }

  [[nodiscard]] bool has_template(const Node& node, const Groups& groups) const {
    Graph body;
    std::vector<ValueId> inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      inputs.push_back(id == no_value
                           ? no_value
                           : body.add_input("x" + std::to_string(i),
                                            make_type(graph_.type(id).dtype, dims_of(node, i, groups))));
    }
    body.outputs = {body.add(Op::attention, inputs, node.attributes)};
    return options_.refuse_template(make_kernel(body, std::vector<bool>(body.inputs.size(), false))).empty();
  }

  /// The result with its heads in one dim again: behind the transpose that reads it, if one does, which the kernel writes.
  ValueId as_it_was(Graph& graph, const Node& node, ValueId result, const Groups& groups) const {
    const Dims dims = graph_.type(node.outputs[0]).dims();
    if (groups.count == 1) return result;
    const std::vector<NodeId>& readers = readers_[node.outputs[0]];
    if (readers.size() != 1 || graph_.node(readers[0]).op != Op::transpose)
      return add_reshape(graph, result, dims);
    const Node& transpose = graph_.node(readers[0]);
    const Dims& perm = transpose.attributes.integers("perm");
    const ValueId turned = add_transpose(graph, result, order_in_groups(perm));
    return add_transpose(graph, add_reshape(graph, turned, graph_.type(transpose.outputs[0]).dims()),
                         inverse_order(perm));
  }

  const Graph& graph_;
  const LoweringOptions& options_;
  IdMap<std::vector<NodeId>> readers_;  ///< per value
};

}  // namespace

Graph share_keys(const Graph& graph, const LoweringOptions& options) {
  return KeySharer(graph, options).run();
}

}  // namespace sylvite
