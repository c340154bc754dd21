// Drops data movement that moves nothing and merges what can be one step.
//   reshape(reshape(x)) -> reshape(x)                 transpose(transpose(x)) -> transpose(x)
//   transpose that only moves unit dims -> reshape    gather at constant, evenly spaced indices -> slice
//   reshape, transpose, broadcast_to, slice, pad, cast, concat that change nothing -> x
//   transpose(gather(transpose(x))), the transposes each other's inverse -> gather along the dim as it lies in x
//   pointwise(x, broadcast_to(y)) with a result of x's extents -> pointwise(x, y)
//   pointwise(x, constant whose elements are all the same) with a result of x's extents -> pointwise(x, one number)
//   broadcast_to(constant whose elements are all the same) -> broadcast_to(one number)
//   reduce_*(x) over dims of one element -> reshape(x)    arg_*(x) along such a dim -> zeros

#include <algorithm>
#include <cstring>

#include "frontend/graph/rewrite.h"
#include "frontend/ops/op_table.h"
#include "frontend/passes/pass_list.h"
#include "frontend/values/even_places.h"
#include "frontend/values/size_table.h"

namespace sylvite {
namespace {

bool all_equal(const std::vector<std::int64_t>& values, std::int64_t expected) {
  return std::all_of(values.begin(), values.end(), [&](std::int64_t value) { return value == expected; });
}

bool changes_nothing(const Node& node, const TensorType& in, const TensorType& out) {
  switch (node.op) {
    case Op::reshape:
    case Op::broadcast_to:
    case Op::cast:
      return in == out;
    case Op::transpose: {
      const auto& perm = node.attributes.integers("perm");
      return std::is_sorted(perm.begin(), perm.end());
    }
    case Op::slice:
      return in == out && all_equal(node.attributes.integers("steps"), 1);
    case Op::pad:
      return in == out && all_equal(node.attributes.integers("low"), 0);
    case Op::concat:
      return node.inputs.size() == 1;
    default:
      return false;
  }
}

Attributes shape_attribute(const TensorType& type) {
  return {{"shape", type.dims()}};
}

/// A transpose keeps row-major order when the dims larger than one stay in order.
bool moves_unit_dims_only(const std::vector<std::int64_t>& perm, const Dims& in) {
  std::int64_t last = -1;
  for (std::int64_t axis : perm) {
    if (in[static_cast<std::size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

bool merge_transposes(GraphRewriter& rewriter, const Node& node, ValueId input) {
  const std::vector<std::int64_t>& perm = node.attributes.integers("perm");
  if (moves_unit_dims_only(perm, rewriter.graph().type(input).dims())) {
    rewriter.replace(node, Op::reshape, {input}, shape_attribute(rewriter.source().type(node.outputs[0])));
    return true;
  }
  const Node* inner = producer_if(rewriter.graph(), input, Op::transpose);
  if (inner == nullptr) return false;
  std::vector<std::int64_t> merged;
  merged.reserve(perm.size());
  for (std::int64_t axis : perm)
    merged.push_back(inner->attributes.integers("perm")[static_cast<std::size_t>(axis)]);
  const ValueId base = inner->inputs[0];
  if (std::is_sorted(merged.begin(), merged.end()))
    rewriter.set(node.outputs[0], base);
  else
    rewriter.replace(node, Op::transpose, {base}, {{"perm", merged}});
  return true;
}

/// Indices of one dim leave the others where they are.
bool gather_in_place(GraphRewriter& rewriter, const Node& node, ValueId input) {
  const Graph& graph = rewriter.graph();
  const Node* picked = producer_if(graph, input, Op::gather);
  if (picked == nullptr || graph.type(picked->inputs[1]).rank() != 1) return false;
  const Node* inner = producer_if(graph, picked->inputs[0], Op::transpose);
  if (inner == nullptr) return false;
  const std::vector<std::int64_t>& there = inner->attributes.integers("perm");
  const std::vector<std::int64_t>& back = node.attributes.integers("perm");
  for (std::size_t i = 0; i < back.size(); ++i)
    if (there[static_cast<std::size_t>(back[i])] != static_cast<std::int64_t>(i)) return false;
  const std::int64_t axis = there[static_cast<std::size_t>(picked->attributes.integer("axis"))];
  const ValueId x = inner->inputs[0], places = picked->inputs[1];
  rewriter.replace(node, Op::gather, {x, places}, {{"axis", axis}});
  return true;
}

bool merge_reshapes(GraphRewriter& rewriter, const Node& node, ValueId input) {
  const Node* inner = producer_if(rewriter.graph(), input, Op::reshape);
  if (inner == nullptr) return false;
  const ValueId base = inner->inputs[0];
  const TensorType& out = rewriter.source().type(node.outputs[0]);
  if (rewriter.graph().type(base) == out)
    rewriter.set(node.outputs[0], base);
  else
    rewriter.replace(node, Op::reshape, {base}, shape_attribute(out));
  return true;
}

/// gather(x, [a, a+s, a+2s, ...]) along an axis is a slice; index tensors of any shape are flattened and the
/// result is reshaped.
bool gather_to_slice(GraphRewriter& rewriter, const Node& node) {
  const Graph& graph = rewriter.graph();
  const ValueId x = rewriter.mapped(node.inputs[0]);
  const ValueId indices = rewriter.mapped(node.inputs[1]);
  if (!graph.is_constant(indices) || graph.value(indices).constant->size() == 0) return false;
  const Dims dims = graph.type(x).dims();
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  std::vector<std::int64_t> wanted = graph.value(indices).constant->to_int64s();
  for (std::int64_t& index : wanted) {
    if (index < 0) index += dims[axis];
    if (index < 0 || index >= dims[axis]) return false;
  }
  const std::int64_t step = step_between(wanted);
  if (step == 0) return false;
  std::vector<std::int64_t> starts(dims.size(), 0);
  std::vector<std::int64_t> steps(dims.size(), 1);
  std::vector<std::int64_t> sizes = dims;
  starts[axis] = wanted[0];
  steps[axis] = step;
  sizes[axis] = static_cast<std::int64_t>(wanted.size());
  const ValueId sliced = rewriter.graph().add(
      Op::slice, {x}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}}, node.name);
  rewriter.replace(node, Op::reshape, {sliced}, shape_attribute(rewriter.source().type(node.outputs[0])));
  return true;
}

/// One element of a constant that has several, all the same; nothing of others.
std::optional<Tensor> one_of(const Graph& graph, ValueId id) {
  if (!graph.is_constant(id) || graph.type(id).layout != Layout{}) return std::nullopt;
  const Tensor& constant = *graph.value(id).constant;
  if (constant.size() < 2 || follows_open_sizes(constant)) return std::nullopt;
  const std::size_t size = dtype_size(constant.dtype());
  const auto* bytes = static_cast<const std::byte*>(constant.data());
  if (std::memcmp(bytes, bytes + size, static_cast<std::size_t>(constant.byte_size()) - size) != 0)
    return std::nullopt;
  Tensor one(constant.dtype(), Dims(constant.dims().size(), 1));
  std::memcpy(one.mutable_data(), bytes, size);
  return one;
}

/// Pointwise work broadcasts its operands by itself, as long as one of them has the extents of the result.
bool drop_broadcasts(GraphRewriter& rewriter, const Node& node) {
  if (node.inputs.size() < 2 || node.outputs.size() != 1) return false;
  const Graph& source = rewriter.source();
  const auto source_of = [&](ValueId id) {
    const Node* view = producer_if(source, id, Op::broadcast_to);
    return view == nullptr ? id : view->inputs[0];
  };
  const Shape& shape = source.type(node.outputs[0]).shape;
  const bool is_whole = std::ranges::any_of(node.inputs, [&](ValueId id) {
    return id != no_value && source_of(id) == id && !source.is_constant(id) && source.type(id).shape == shape;
  });
  if (!is_whole) return false;
  std::vector<ValueId> inputs;
  inputs.reserve(node.inputs.size());
  bool any = false;
  for (const ValueId id : node.inputs) {
    const std::optional<Tensor> one = id == no_value ? std::nullopt : one_of(source, id);
    const ValueId from = id == no_value ? id : source_of(id);
    inputs.push_back(one ? rewriter.graph().add_constant(*one) : rewriter.mapped(from));
    any = any || one || from != id;
  }
  if (!any) return false;
  rewriter.replace(node, node.op, inputs, node.attributes);
  return true;
}

/// Of a constant whose elements are all the same, one is enough.
bool broadcast_one(GraphRewriter& rewriter, const Node& node, ValueId input) {
  const std::optional<Tensor> one = one_of(rewriter.graph(), input);
  if (one) rewriter.replace(node, Op::broadcast_to, {rewriter.graph().add_constant(*one)}, node.attributes);
  return one.has_value();
}

/// A fold of one element is that, and its place the first.
bool drop_fold(GraphRewriter& rewriter, const Node& node) {
  const Dims dims = rewriter.source().type(node.inputs[0]).dims();
  const bool is_place = !node.attributes.has("axes");
  const Dims axes = is_place ? Dims{node.attributes.integer("axis")} : node.attributes.integers("axes");
  if (std::ranges::any_of(axes, [&](std::int64_t axis) { return dims[static_cast<std::size_t>(axis)] != 1; }))
    return false;
  const TensorType& out = rewriter.source().type(node.outputs[0]);
  if (!is_place) {
    rewriter.replace(node, Op::reshape, {rewriter.mapped(node.inputs[0])}, shape_attribute(out));
    return true;
  }
  const ValueId zero = rewriter.graph().add_constant(Tensor(out.dtype, Dims(out.dims().size(), 1)));
  rewriter.replace(node, Op::broadcast_to, {zero}, shape_attribute(out));
  return true;
}

}  // namespace

Graph simplify_views(const Graph& graph) {
  return rewrite_nodes(graph, [](GraphRewriter& rewriter, const Node& node) {
    if (node.op == Op::gather) return gather_to_slice(rewriter, node);
    if (has_trait(node.op, OpTrait::reduction)) return drop_fold(rewriter, node);
    if (has_trait(node.op, OpTrait::pointwise) && node.op != Op::cast) return drop_broadcasts(rewriter, node);
    if (!has_trait(node.op, OpTrait::movement) && node.op != Op::cast) return false;
    if (node.inputs.empty()) return false;
    const ValueId input = rewriter.mapped(node.inputs[0]);
    const TensorType& out = rewriter.source().type(node.outputs[0]);
    if (changes_nothing(node, rewriter.graph().type(input), out)) {
      rewriter.set(node.outputs[0], input);
      return true;
    }
    if (node.op == Op::transpose)
      return merge_transposes(rewriter, node, input) || gather_in_place(rewriter, node, input);
    if (node.op == Op::reshape) return merge_reshapes(rewriter, node, input);
    return node.op == Op::broadcast_to && broadcast_one(rewriter, node, input);
  });
}

}  // namespace sylvite
