// What 8-bit integers stand for grows with them, so that the largest of a window is that of the largest integer; and
// numbers that were made of integers give these back:
//   max_pool((q - zero) scale)               ->   (max_pool(q) - zero) scale
//   round((q - zero) scale, scale, zero)     ->   q
// Sums of integers are exact, and take less work than those of what they stand for:
//   sum of n ((q - zero) scale)              ->   (sum of q - n zero) scale

#include <limits>

#include "frontend/graph/rewrite.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

/// (steps - zero) scale, of numbers.
struct DequantizedSteps {
  ValueId steps = no_value;  ///< of 8 or 16 bits
  ValueId zero = no_value;   ///< f32, or absent
  ValueId scale = no_value;
};

ValueId integer_source(const Graph& graph, ValueId id) {
  const Node* cast = producer_if(graph, id, Op::cast);
  if (cast == nullptr || graph.type(id).dtype != DType::f32) return no_value;
  const DType from = graph.type(cast->inputs[0]).dtype;
  const bool is_integer = is_signed_integer(from) || is_unsigned_integer(from);
  return is_integer && dtype_bits(from) >= 8 && dtype_bits(from) <= 16 ? cast->inputs[0] : no_value;
}

std::optional<DequantizedSteps> dequantized_steps(const Graph& graph, ValueId id) {
  const Node* mul = producer_if(graph, id, Op::mul);
  if (mul == nullptr || scalar_constant(graph, mul->inputs[1]).value_or(0) <= 0) return std::nullopt;
  DequantizedSteps result{integer_source(graph, mul->inputs[0]), no_value, mul->inputs[1]};
  const Node* sub = producer_if(graph, mul->inputs[0], Op::sub);
  if (sub != nullptr && scalar_constant(graph, sub->inputs[1])) {
    result.steps = integer_source(graph, sub->inputs[0]);
    result.zero = sub->inputs[1];
  }
  const bool is_one = result.steps != no_value && graph.type(result.steps).shape == graph.type(id).shape;
  return is_one ? std::optional(result) : std::nullopt;
}

bool rewrite_pool(GraphRewriter& rewriter, const Node& node) {
  Graph& graph = rewriter.graph();
  const std::optional<DequantizedSteps> x = dequantized_steps(graph, rewriter.mapped(node.inputs[0]));
  if (!x) return false;
  ValueId y = graph.add(Op::max_pool, {x->steps}, node.attributes, node.name);
  y = graph.add(Op::cast, {y}, {{"to", "f32"}});
  if (x->zero != no_value) y = graph.add(Op::sub, {y, x->zero});
  rewriter.replace(node, Op::mul, {y, x->scale});
  return true;
}

bool rewrite_sum(const Graph& source, GraphRewriter& rewriter, const Node& node) {
  Graph& graph = rewriter.graph();
  const std::optional<DequantizedSteps> x = dequantized_steps(graph, rewriter.mapped(node.inputs[0]));
  if (!x || !graph.type(x->steps).is_known()) return false;
  const std::int64_t sums = graph.type(rewriter.mapped(node.inputs[0])).element_count();
  const std::int64_t results = source.type(node.outputs[0]).element_count();
  const std::int64_t most =
      std::numeric_limits<std::int32_t>::max() >> dtype_bits(graph.type(x->steps).dtype);
  if (results == 0 || sums / results > most) return false;
  ValueId y = graph.add(Op::cast, {x->steps}, {{"to", "i32"}});
  y = graph.add(Op::reduce_sum, {y}, node.attributes, node.name);
  y = graph.add(Op::cast, {y}, {{"to", "f32"}});
  if (x->zero != no_value) {
    const double zeros = *scalar_constant(graph, x->zero) * static_cast<double>(sums / results);
    y = graph.add(Op::sub, {y, graph.add_constant(Tensor::scalar_f32(static_cast<float>(zeros)))});
  }
  rewriter.replace(node, Op::mul, {y, x->scale});
  return true;
}

/// Rounding errors of the number are far below half a step.
bool rewrite_round(GraphRewriter& rewriter, const Node& node) {
  const Graph& graph = rewriter.graph();
  if (node.inputs.size() < 2) return false;
  const std::optional<DequantizedSteps> x = dequantized_steps(graph, rewriter.mapped(node.inputs[0]));
  const std::optional<double> scale = scalar_constant(graph, rewriter.mapped(node.inputs[1]));
  if (!x || !scale || graph.type(x->steps).dtype != parse_dtype(node.attributes.string("to"))) return false;
  const auto zero_of = [&](ValueId id) { return id == no_value ? 0.0 : scalar_constant(graph, id); };
  const ValueId zero = node.inputs.size() > 2 ? rewriter.mapped(node.inputs[2]) : no_value;
  if (scalar_constant(graph, x->scale) != scale || !zero_of(zero) || zero_of(x->zero) != zero_of(zero))
    return false;
  rewriter.set(node.outputs[0], x->steps);
  return true;
}

bool rewrite_steps(const Graph& source, GraphRewriter& rewriter, const Node& node) {
  if (node.op == Op::max_pool) return rewrite_pool(rewriter, node);
  if (node.op == Op::reduce_sum) return rewrite_sum(source, rewriter, node);
  return node.op == Op::round && rewrite_round(rewriter, node);
}

}  // namespace

Graph pool_steps(const Graph& graph) {
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return rewrite_steps(graph, rewriter, node); });
}

}  // namespace sylvite
