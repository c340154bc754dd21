// x * sigmoid(x) becomes silu; x * hard_sigmoid(x; 1/6, 1/2) and x * min(max(x + 3, 0), 6) / 6 become
// hard_swish.

#include <cmath>
#include <tuple>

#include "frontend/graph/rewrite.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

bool is_sigmoid_of(const Graph& graph, ValueId id, ValueId x) {
  const Node* node = producer_if(graph, id, Op::sigmoid);
  return node != nullptr && node->inputs[0] == x;
}

bool is_hard_sigmoid_of(const Graph& graph, ValueId id, ValueId x) {
  const Node* node = producer_if(graph, id, Op::hard_sigmoid);
  return node != nullptr && node->inputs[0] == x &&
         std::abs(node->attributes.real("alpha") - 1.0 / 6.0) < 1e-6 &&
         std::abs(node->attributes.real("beta") - 0.5) < 1e-6;
}

/// min(max(x + 3, 0), 6), with either order of the two bounds and of the operands.
bool is_clipped_shift_of(const Graph& graph, ValueId id, ValueId x) {
  for (const auto& [outer, outer_bound, inner, inner_bound] :
       {std::tuple{Op::minimum, 6.0, Op::maximum, 0.0}, std::tuple{Op::maximum, 0.0, Op::minimum, 6.0}}) {
    const Node* first = producer_if(graph, id, outer);
    if (first == nullptr) continue;
    const bool matched = either_order(*first, [&, bound = outer_bound, op = inner, next = inner_bound](
                                                  ValueId a, ValueId b) {
      const Node* second = producer_if(graph, a, op);
      if (second == nullptr || scalar_constant(graph, b) != bound) return false;
      return either_order(*second, [&](ValueId c, ValueId d) {
        const Node* shift = producer_if(graph, c, Op::add);
        if (shift == nullptr || scalar_constant(graph, d) != next) return false;
        return either_order(*shift, [&](ValueId e, ValueId f) { return e == x && is_scalar(graph, f, 3.0); });
      });
    });
    if (matched) return true;
  }
  return false;
}

/// x of x * clip(x + 3, 0, 6) / 6, the division on the product or on either factor.
std::optional<ValueId> hard_swish_argument(const Graph& graph, ValueId root) {
  const Scaled whole = scaled(graph, root);
  const Node* product = producer_if(graph, whole.base, Op::mul);
  if (product == nullptr) return std::nullopt;
  std::optional<ValueId> found;
  (void)either_order(*product, [&](ValueId a, ValueId b) {
    const Scaled clip = scaled_as_f32(graph, b);
    const bool sixth = std::abs(whole.factor * clip.factor - 1.0 / 6.0) < 1e-6;
    if (sixth && is_clipped_shift_of(graph, clip.base, a)) found = a;
    return found.has_value();
  });
  return found;
}

}  // namespace

Graph fuse_silu(const Graph& graph) {
  return rewrite_nodes(graph, [](GraphRewriter& rewriter, const Node& node) {
    if (node.op != Op::mul && node.op != Op::div) return false;
    rewriter.copy(node);
    const Graph& now = rewriter.graph();
    const ValueId root = rewriter.mapped(node.outputs[0]);
    const Node product = now.nodes().back();
    if (node.op == Op::mul) {
      for (int side : {0, 1}) {
        const ValueId x = product.inputs[side];
        const ValueId gate = product.inputs[1 - side];
        const bool soft = is_sigmoid_of(now, gate, x);
        if (!soft && !is_hard_sigmoid_of(now, gate, x)) continue;
        rewriter.replace(node, soft ? Op::silu : Op::hard_swish, {x});
        return true;
      }
    }
    if (const auto x = hard_swish_argument(now, root)) rewriter.replace(node, Op::hard_swish, {*x});
    return true;
  });
}

}  // namespace sylvite
