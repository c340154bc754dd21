// Local identities that hold for every finite input, as a table of rules per operation:
//   log(exp(x)) = x                 neg(neg(x)) = x              not(not(x)) = x      relu(relu(x)) = relu(x)
//   x*1 = x/1 = x+0 = x-0 = x       (x*a)*b = x*(a*b)            x/2^k = x*2^-k
//   pow(x, 1|2|..16|0.5) = x|x*x|products|sqrt(x)                1/sqrt(x) = reciprocal(sqrt(x)) = rsqrt(x)
//   where(all true, a, b) = a       where(all false, a, b) = b      where(c, a, a) = a
//   avg_pool by a window that is the whole map = reduce_sum / its size
// A rule never fires when it would change the shape by dropping a broadcast.

#include <array>
#include <cmath>
#include <cstring>

#include "frontend/graph/rewrite.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

/// The value that stands for the node's output, or nullopt when the rule does not apply.
using Result = std::optional<ValueId>;
using Inputs = std::vector<ValueId>;

struct Rule {
  Op op;
  Result (*apply)(Graph&, const Node&, const Inputs&);
};

bool is_float_value(const Graph& graph, ValueId id) {
  return is_float(graph.type(id).dtype);
}

/// True for a constant all of whose elements are `expected`; large constants are not looked through.
bool is_filled(const Graph& graph, ValueId id, double expected) {
  constexpr std::int64_t look_at_most = 1 << 20;
  if (!graph.is_constant(id)) return false;
  const Tensor& tensor = *graph.value(id).constant;
  if (tensor.size() == 0 || tensor.size() > look_at_most) return false;
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    if (tensor.as_double(i) != expected) return false;
  return true;
}

Result undo(Op inner, Graph& graph, ValueId input) {
  const Node* node = producer_if(graph, input, inner);
  return node == nullptr ? Result{} : Result{node->inputs[0]};
}

Result log_of_exp(Graph& graph, const Node&, const Inputs& in) {
  return undo(Op::exp, graph, in[0]);
}
Result double_neg(Graph& graph, const Node&, const Inputs& in) {
  return undo(Op::neg, graph, in[0]);
}
Result double_not(Graph& graph, const Node&, const Inputs& in) {
  return undo(Op::logical_not, graph, in[0]);
}
Result double_relu(Graph& graph, const Node&, const Inputs& in) {
  return producer_if(graph, in[0], Op::relu) != nullptr ? Result{in[0]} : Result{};
}

ValueId scalar_like(Graph& graph, ValueId model, double value) {
  Tensor tensor(graph.type(model).dtype, {});
  tensor.set_double(0, value);
  return graph.add_constant(std::move(tensor));
}

Result mul_rules(Graph& graph, const Node&, const Inputs& in) {
  for (int side : {0, 1}) {
    const ValueId other = in[1 - side];
    const ValueId constant = in[side];
    if (is_filled(graph, constant, 1.0)) return other;
    const std::optional<double> factor = scalar_constant(graph, constant);
    if (!factor || !is_float_value(graph, other) || graph.type(constant).rank() > graph.type(other).rank())
      continue;
    const Scaled inner = scaled(graph, other);
    if (inner.base == other) continue;
    return graph.add(Op::mul, {inner.base, scalar_like(graph, other, inner.factor * *factor)});
  }
  return {};
}

Result div_rules(Graph& graph, const Node&, const Inputs& in) {
  if (is_filled(graph, in[1], 1.0)) return in[0];
  if (!is_float_value(graph, in[0])) return {};
  if (is_filled(graph, in[0], 1.0)) {
    if (const Result root = undo(Op::sqrt, graph, in[1])) return graph.add(Op::rsqrt, {*root});
  }
  const std::optional<double> divisor = scalar_constant(graph, in[1]);
  int exponent = 0;
  if (!divisor || std::abs(std::frexp(*divisor, &exponent)) != 0.5 || std::abs(exponent) > 100) return {};
  return graph.add(Op::mul, {in[0], scalar_like(graph, in[0], 1.0 / *divisor)});
}

Result add_rules(Graph& graph, const Node&, const Inputs& in) {
  if (is_filled(graph, in[0], 0.0)) return in[1];
  if (is_filled(graph, in[1], 0.0)) return in[0];
  return {};
}

Result sub_rules(Graph& graph, const Node&, const Inputs& in) {
  return is_filled(graph, in[1], 0.0) ? Result{in[0]} : Result{};
}

/// x to a whole exponent of at least 1, by squares.
ValueId add_power(Graph& graph, ValueId x, int exponent) {
  if (exponent == 1) return x;
  const ValueId root = add_power(graph, x, exponent / 2), square = graph.add(Op::mul, {root, root});
  return exponent % 2 == 0 ? square : graph.add(Op::mul, {square, x});
}

/// In f32, which may be rounded after each product, whole powers up to 16 are few products: pow costs more than twenty.
bool has_short_power(const Graph& graph, ValueId x, double exponent) {
  const double most = graph.type(x).dtype == DType::f32 ? 16 : 3;
  return exponent >= 1 && exponent <= most && exponent == std::floor(exponent);
}

Result pow_rules(Graph& graph, const Node&, const Inputs& in) {
  const std::optional<double> exponent = scalar_constant(graph, in[1]);
  if (!exponent || !is_float_value(graph, in[0])) return {};
  if (has_short_power(graph, in[0], *exponent)) return add_power(graph, in[0], static_cast<int>(*exponent));
  if (*exponent == 0.5) return graph.add(Op::sqrt, {in[0]});
  return {};
}

Result reciprocal_of_sqrt(Graph& graph, const Node&, const Inputs& in) {
  const Result root = undo(Op::sqrt, graph, in[0]);
  return root ? Result{graph.add(Op::rsqrt, {*root})} : Result{};
}

/// The same value, or one number of the same bits: zeros of two signs are two.
bool are_equal(const Graph& graph, ValueId one, ValueId other) {
  if (one == other) return true;
  if (!scalar_constant(graph, one) || !scalar_constant(graph, other)) return false;
  const Tensor &a = *graph.value(one).constant, &b = *graph.value(other).constant;
  return a.dtype() == b.dtype() && std::memcmp(a.data(), b.data(), dtype_size(a.dtype())) == 0;
}

Result where_rules(Graph& graph, const Node&, const Inputs& in) {
  if (is_filled(graph, in[0], 1.0) || are_equal(graph, in[1], in[2])) return in[1];
  if (is_filled(graph, in[0], 0.0)) return in[2];
  return {};
}

/// A mean of all that a map has needs no windows.
Result avg_pool_rules(Graph& graph, const Node& node, const Inputs& in) {
  const TensorType& type = graph.type(in[0]);
  const std::vector<std::int64_t>& window = node.attributes.integers("kernel");
  Dims axes;
  double size = 1;
  for (std::size_t d = 0; d < window.size(); ++d) {
    const Extent& extent = type.shape[d + 2];
    if (!extent.is_known() || extent.known() != window[d]) return {};
    axes.push_back(static_cast<std::int64_t>(d) + 2);
    size *= static_cast<double>(window[d]);
  }
  for (const std::int64_t pad : node.attributes.integers("pads"))
    if (pad != 0) return {};
  for (const std::int64_t step : node.attributes.integers("dilations"))
    if (step != 1) return {};
  const ValueId sum = graph.add(Op::reduce_sum, {in[0]}, {{"axes", axes}});
  return graph.add(Op::mul, {sum, scalar_like(graph, sum, 1 / size)});
}

constexpr std::array<Rule, 12> rules = {{
    {Op::log, log_of_exp},
    {Op::neg, double_neg},
    {Op::logical_not, double_not},
    {Op::relu, double_relu},
    {Op::mul, mul_rules},
    {Op::div, div_rules},
    {Op::add, add_rules},
    {Op::sub, sub_rules},
    {Op::pow, pow_rules},
    {Op::reciprocal, reciprocal_of_sqrt},
    {Op::where, where_rules},
    {Op::avg_pool, avg_pool_rules},
}};

/// What replaces an output must have its type; a dropped broadcast is put back.
ValueId with_shape(Graph& graph, ValueId id, const TensorType& wanted) {
  if (graph.type(id).shape == wanted.shape) return id;
  return graph.add(Op::broadcast_to, {id}, {{"shape", wanted.dims()}});
}

}  // namespace

Graph simplify_algebra(const Graph& graph) {
  return rewrite_nodes(graph, [](GraphRewriter& rewriter, const Node& node) {
    for (const Rule& rule : rules) {
      if (rule.op != node.op) continue;
      const Inputs inputs = rewriter.mapped(node.inputs);
      const Result result = rule.apply(rewriter.graph(), node, inputs);
      if (!result) return false;
      const TensorType& wanted = rewriter.source().type(node.outputs[0]);
      rewriter.set(node.outputs[0], with_shape(rewriter.graph(), *result, wanted));
      return true;
    }
    return false;
  });
}

}  // namespace sylvite
