// Two spellings of GELU (Hendrycks and Gimpel, arXiv 1606.08415), in any association and order of the
// products:
//   0.5 * x * (1 + erf(x / sqrt(2)))
//   0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3)))

#include <cmath>
#include <numbers>

#include "frontend/graph/rewrite.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

bool near(double value, double expected) {
  return std::abs(value - expected) <= 1e-4 * std::abs(expected);
}

/// x of 1 + erf(x / sqrt(2)).
std::optional<ValueId> erf_argument(const Graph& graph, ValueId id) {
  const Node* erf = producer_if(graph, id, Op::erf);
  if (erf == nullptr) return std::nullopt;
  const Scaled inside = scaled_as_f32(graph, erf->inputs[0]);
  if (!near(inside.factor, std::numbers::sqrt2 / 2)) return std::nullopt;
  return inside.base;
}

bool is_cube_of(const Graph& graph, ValueId id, ValueId x) {
  if (const Node* power = producer_if(graph, id, Op::pow))
    return power->inputs[0] == x && is_scalar(graph, power->inputs[1], 3.0);
  const Node* product = producer_if(graph, id, Op::mul);
  return product != nullptr && either_order(*product, [&](ValueId a, ValueId b) {
           const Node* square = producer_if(graph, b, Op::mul);
           return a == x && square != nullptr && square->inputs[0] == x && square->inputs[1] == x;
         });
}

/// x of tanh(sqrt(2/pi) * (x + 0.044715 * x^3)).
std::optional<ValueId> tanh_argument(const Graph& graph, ValueId id) {
  const Node* tanh = producer_if(graph, id, Op::tanh);
  if (tanh == nullptr) return std::nullopt;
  const Scaled inside = scaled_as_f32(graph, tanh->inputs[0]);
  const Node* sum = producer_if(graph, inside.base, Op::add);
  if (sum == nullptr || !near(inside.factor, std::sqrt(2.0 / std::numbers::pi))) return std::nullopt;
  std::optional<ValueId> found;
  const auto match = [&](ValueId x, ValueId cubic) {
    const Scaled term = scaled_as_f32(graph, cubic);
    if (!near(term.factor, 0.044715) || !is_cube_of(graph, term.base, x)) return false;
    found = x;
    return true;
  };
  if (!either_order(*sum, match)) return std::nullopt;
  return found;
}

struct Gate {
  ValueId x = no_value;
  std::string approximate;
};

/// Recognises 1 + erf(...) or 1 + tanh(...).
std::optional<Gate> match_gate(const Graph& graph, ValueId id) {
  const Node* sum = producer_if(graph, id, Op::add);
  if (sum == nullptr) return std::nullopt;
  std::optional<Gate> gate;
  const auto match = [&](ValueId one, ValueId curve) {
    if (!is_scalar(graph, one, 1.0)) return false;
    if (const auto x = erf_argument(graph, curve)) gate = Gate{*x, "none"};
    if (const auto x = tanh_argument(graph, curve)) gate = Gate{*x, "tanh"};
    return gate.has_value();
  };
  (void)either_order(*sum, match);
  return gate;
}

/// Multiplies out `id` down to the leaves `x` and `gate`: counts of each and the product of scalars.
struct Product {
  int x_count = 0;
  int gate_count = 0;
  double factor = 1;
};
bool multiply_out(const Graph& graph, ValueId id, ValueId x, ValueId gate, int depth, Product& product) {
  if (id == gate) return ++product.gate_count == 1;
  if (id == x) return ++product.x_count == 1;
  if (const auto scalar = scalar_constant(graph, id)) {
    product.factor *= *scalar;
    return true;
  }
  const Node* mul = producer_if(graph, id, Op::mul);
  return mul != nullptr && depth > 0 && multiply_out(graph, mul->inputs[0], x, gate, depth - 1, product) &&
         multiply_out(graph, mul->inputs[1], x, gate, depth - 1, product);
}

/// Finds a gate among the factors of a product.
std::optional<ValueId> find_gate(const Graph& graph, ValueId id, int depth) {
  if (match_gate(graph, id)) return id;
  const Node* mul = producer_if(graph, id, Op::mul);
  if (mul == nullptr || depth == 0) return std::nullopt;
  if (const auto found = find_gate(graph, mul->inputs[0], depth - 1)) return found;
  return find_gate(graph, mul->inputs[1], depth - 1);
}

}  // namespace

Graph fuse_gelu(const Graph& graph) {
  constexpr int depth = 3;
  return rewrite_nodes(graph, [](GraphRewriter& rewriter, const Node& node) {
    if (node.op != Op::mul) return false;
    rewriter.copy(node);
    const Graph& now = rewriter.graph();
    const ValueId root = rewriter.mapped(node.outputs[0]);
    const auto gate_value = find_gate(now, root, depth);
    const auto gate = gate_value ? match_gate(now, *gate_value) : std::nullopt;
    if (!gate) return true;
    Product product;
    if (!multiply_out(now, root, gate->x, *gate_value, depth, product) || product.x_count != 1 ||
        product.gate_count != 1 || !near(product.factor, 0.5) || now.type(root) != now.type(gate->x)) {
      return true;
    }
    rewriter.replace(node, Op::gelu, {gate->x}, {{"approximate", gate->approximate}});
    return true;
  });
}

}  // namespace sylvite
