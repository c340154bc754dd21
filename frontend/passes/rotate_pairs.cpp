// What rotary embeddings turn, in one piece: neither the negated half nor every other element is a value of its own.
//   concat(neg(a), b)                                           -> mul(concat(a, b), {-1, ..., 1, ...})
//   concat of neg(x[..., 1::2]) and x[..., 0::2] as [..., d/2, 1] -> reshape(mul(gather(x, {1, 0, 3, 2, ...}), {-1, 1, -1, 1, ...}))
// A negation that nothing else reads goes at most through a reshape.

#include "frontend/passes/rotate_pairs.h"

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"

namespace sylvite {
namespace {

using Uses = IdMap<std::vector<NodeId>>;

/// The negation that a part of a concat is, at most reshaped, and that nothing else reads; else nullptr.
const Node* own_negation(const Graph& graph, const Uses& uses, ValueId part) {
  const auto is_own = [&](ValueId id) {
    return uses[id].size() == 1 && std::ranges::count(graph.outputs, id) == 0;
  };
  if (!is_own(part)) return nullptr;
  const Node* reshape = producer_if(graph, part, Op::reshape);
  if (reshape != nullptr && !is_own(reshape->inputs[0])) return nullptr;
  return producer_if(graph, reshape == nullptr ? part : reshape->inputs[0], Op::neg);
}

/// Each step-th of the elements of rows from the `first` on, each as a row of its own: [..., d/step, 1].
struct OneOfEach {
  ValueId rows = no_value;
  std::int64_t first = 0, step = 0;
};

OneOfEach one_of_each(Graph& graph, ValueId id) {
  const Node* reshape = producer_if(graph, id, Op::reshape);
  const Node* slice = reshape == nullptr ? nullptr : producer_if(graph, reshape->inputs[0], Op::slice);
  if (slice == nullptr) return {};
  Dims starts = slice->attributes.integers("starts"), sizes = slice->attributes.integers("sizes");
  Dims steps = slice->attributes.integers("steps"), unsqueezed = sizes;
  unsqueezed.push_back(1);
  const ValueId source = slice->inputs[0];
  const std::int64_t step = steps.back(), first = starts.back(), extent = graph.type(source).dims().back();
  if (graph.type(id).dims() != unsqueezed || first >= step || sizes.back() * step != extent) return {};
  starts.back() = 0;
  sizes.back() = extent;
  steps.back() = 1;
  return {add_slice(graph, source, starts, sizes, steps), first, step};
}

/// The same value, or equal slices of one.
bool are_equal_slices(const Graph& graph, ValueId a, ValueId b) {
  const Node *first = producer_if(graph, a, Op::slice), *second = producer_if(graph, b, Op::slice);
  return a == b || (first != nullptr && second != nullptr && first->inputs == second->inputs &&
                    first->attributes == second->attributes);
}

/// To be multiplied along the first of so many dims and one.
ValueId add_signs(Graph& graph, const std::vector<float>& signs, std::size_t dims_behind) {
  Dims dims(dims_behind + 1, 1);
  dims[0] = std::ssize(signs);
  return graph.add_constant(Tensor::of(DType::f32, dims, signs));
}

/// The rows that the parts together are, in another order; no_value where they are not.
ValueId turned_rows(Graph& graph, const std::vector<ValueId>& parts, const std::vector<bool>& is_negated) {
  const auto count = std::ssize(parts);
  std::vector<OneOfEach> places;
  places.reserve(parts.size());
  for (const ValueId part : parts) places.push_back(one_of_each(graph, part));
  const ValueId source = places[0].rows;
  for (const OneOfEach& place : places)
    if (place.rows == no_value || place.step != count || !are_equal_slices(graph, place.rows, source))
      return no_value;
  std::vector<std::int64_t> order;
  std::vector<float> signs;
  for (std::int64_t i = 0, extent = graph.type(source).dims().back(); i < extent; ++i) {
    const auto part = static_cast<std::size_t>(i % count);
    order.push_back(i / count * count + places[part].first);
    signs.push_back(is_negated[part] ? -1.0F : 1.0F);
  }
  const ValueId index = graph.add_constant(Tensor::of(DType::i64, {std::ssize(order)}, order));
  const std::int64_t last = graph.type(source).rank() - 1;
  const ValueId turned = graph.add(Op::gather, {source, index}, {{"axis", last}});
  return graph.add(Op::mul, {turned, add_signs(graph, signs, 0)});
}

bool pull_signs(GraphRewriter& rewriter, const Node& node, const Uses& uses) {
  const Graph& source = rewriter.source();
  const TensorType& type = source.type(node.outputs[0]);
  if (type.dtype != DType::f32 || !type.is_known() || type.element_count() == 0) return false;
  std::vector<bool> is_negated;
  is_negated.reserve(node.inputs.size());
  for (const ValueId part : node.inputs) is_negated.push_back(own_negation(source, uses, part) != nullptr);
  if (std::ranges::count(is_negated, true) == 0) return false;
  Graph& graph = rewriter.graph();
  std::vector<ValueId> parts;
  for (const ValueId part : node.inputs) {
    const Node* negation = own_negation(source, uses, part);
    const ValueId positive = rewriter.mapped(negation == nullptr ? part : negation->inputs[0]);
    parts.push_back(add_reshape(graph, positive, source.type(part).dims()));
  }
  const std::int64_t axis = node.attributes.integer("axis"), last = type.rank() - 1;
  if (const ValueId rows = axis == last ? turned_rows(graph, parts, is_negated) : no_value;
      rows != no_value) {
    rewriter.set(node.outputs[0], add_reshape(graph, rows, type.dims()));
    return true;
  }
  std::vector<float> signs;
  for (std::size_t i = 0; i < parts.size(); ++i)
    signs.insert(signs.end(),
                 static_cast<std::size_t>(graph.type(parts[i]).dims()[static_cast<std::size_t>(axis)]),
                 is_negated[i] ? -1.0F : 1.0F);
  const ValueId joined = graph.add(Op::concat, parts, node.attributes);
  rewriter.replace(node, Op::mul, {joined, add_signs(graph, signs, static_cast<std::size_t>(last - axis))});
  return true;
}

/// A reshape of turned rows that joins them again is none.
bool join_rows(GraphRewriter& rewriter, const Node& node) {
  Graph& graph = rewriter.graph();
  const ValueId input = rewriter.mapped(node.inputs[0]);
  if (producer_if(rewriter.source(), node.inputs[0], Op::concat) == nullptr ||
      producer_if(graph, input, Op::reshape) == nullptr)
    return false;
  rewriter.set(node.outputs[0], add_reshape(graph, input, rewriter.source().type(node.outputs[0]).dims()));
  return true;
}

}  // namespace

Graph rotate_pairs(const Graph& graph) {
  const Uses uses = graph.uses();
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    if (node.op == Op::reshape) return join_rows(rewriter, node);
    return node.op == Op::concat && pull_signs(rewriter, node, uses);
  });
}

}  // namespace sylvite
