// Before: y = reduce_sum(x [A, B, C, D], [2, 3])          y = layer_norm(x [A, B, C, D]) from axis 2 on
// After:  y = reshape(reduce_sum(reshape(x, [A, B, C*D]), [2]))
// Kernels of a GPU fold rows of one dim, so that dims that are folded together and lie together become one. Images that follow
// a convolution stay: their channels may lie innermost. Once layouts are known, those that are dense become one, too. On a CPU
// they become one where the last is too short for vectors.

#include <algorithm>
#include <functional>
#include <optional>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/images.h"
#include "lowering/passes/merge_dense_folds.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

bool is_reduction(Op op) {
  return op == Op::reduce_sum || op == Op::reduce_max || op == Op::reduce_min || op == Op::reduce_prod;
}

/// Per value: an image that counts, that is made of a convolution's result.
IdMap<bool> images_behind_convolutions(const Graph& graph,
                                       const std::function<bool(const TensorType&)>& counts) {
  IdMap<bool> images(graph.values().size(), false);
  for (const Node& node : graph.nodes())
    for (const ValueId out : node.outputs)
      images[out] = counts(graph.type(out)) &&
                    (node.op == Op::conv || std::ranges::any_of(node.inputs, [&](ValueId id) {
                       return id != no_value && images[id];
                     }));
  return images;
}

/// The first of the dims that are folded, where those are the last ones and more than one.
std::optional<std::size_t> first_folded(const Graph& graph, const Node& node) {
  const TensorType& type = graph.type(node.inputs[0]);
  if (!type.is_known() || type.element_count() == 0) return std::nullopt;
  const std::int64_t rank = type.rank();
  if (node.op == Op::layer_norm) {
    const std::int64_t axis = node.attributes.integer("axis");
    return axis + 1 < rank ? std::optional(static_cast<std::size_t>(axis)) : std::nullopt;
  }
  if (!is_reduction(node.op)) return std::nullopt;
  const std::vector<std::int64_t>& axes = node.attributes.integers("axes");
  const auto count = static_cast<std::int64_t>(axes.size());
  if (count < 2) return std::nullopt;
  for (std::int64_t i = 0; i < count; ++i)
    if (axes[static_cast<std::size_t>(i)] != rank - count + i) return std::nullopt;
  return static_cast<std::size_t>(rank - count);
}

Dims merged_from(const Dims& dims, std::size_t first) {
  Dims merged(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(first));
  merged.push_back(product(dims, first, dims.size()));
  return merged;
}

bool merge(GraphRewriter& rewriter, const Node& node, const IdMap<bool>& images) {
  if (node.op != Op::layer_norm && !is_reduction(node.op)) return false;
  if (node.attributes.has("groups")) return false;
  if (images[node.inputs[0]]) return false;
  const Graph& source = rewriter.source();
  const std::optional<std::size_t> first = first_folded(source, node);
  if (!first) return false;
  Graph& graph = rewriter.graph();
  const Dims dims = source.type(node.inputs[0]).dims();
  std::vector<ValueId> inputs = {
      add_reshape(graph, rewriter.mapped(node.inputs[0]), merged_from(dims, *first))};
  Attributes attributes = node.attributes;
  if (node.op == Op::layer_norm) {
    // Scale and shift have the dims that are folded.
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
      inputs.push_back(node.inputs[i] == no_value
                           ? no_value
                           : add_reshape(graph, rewriter.mapped(node.inputs[i]),
                                         merged_from(source.type(node.inputs[i]).dims(), 0)));
  } else {
    attributes.set("axes", Dims{static_cast<std::int64_t>(*first)});
  }
  const ValueId folded = graph.add(node.op, inputs, attributes, node.name);
  rewriter.set(node.outputs[0], add_reshape(graph, folded, source.type(node.outputs[0]).dims()));
  return true;
}

}  // namespace

Graph merge_folds(const Graph& graph, bool tf32) {
  const IdMap<bool> images = images_behind_convolutions(
      graph, [&](const TensorType& type) { return may_lie_innermost(type, tf32); });
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return merge(rewriter, node, images); });
}

Graph merge_short_folds(const Graph& graph) {
  constexpr std::int64_t short_row = 16;
  const IdMap<bool> images =
      images_behind_convolutions(graph, [](const TensorType& type) { return type.rank() >= 4; });
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    if (node.op != Op::layer_norm && !is_reduction(node.op)) return false;
    const Shape& shape = rewriter.source().type(node.inputs[0]).shape;
    const bool is_short = !shape.empty() && shape.back().is_known() && shape.back().known() < short_row;
    return is_short && merge(rewriter, node, images);
  });
}

Graph merge_dense_folds(const Graph& graph) {
  IdMap<bool> images(graph.values().size(), false);
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values().size()); ++id)
    images[id] = graph.type(id).layout.channel_block != 0;
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return merge(rewriter, node, images); });
}

}  // namespace sylvite
