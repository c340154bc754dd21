// Before: y = attention(q, k, v, mask)
// After:  y = matmul(softmax(matmul(q * scale, transpose(k)) + mask), v)

#include <utility>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/attention_scale.h"
#include "lowering/passes/attention_forms.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

ValueId add_product_parts(Graph& graph, const Node& node, const std::vector<ValueId>& inputs) {
  const TensorType q = graph.type(inputs[0]);
  Tensor factor(q.dtype, {});
  factor.set_double(0, attention_scale(node.attributes, q.dims().back()));
  const ValueId keys = add_transpose(graph, inputs[1], last_two_swapped(q.rank()));
  ValueId scores = graph.add(Op::matmul, {inputs[0], keys}, {}, node.name);
  scores = graph.add(Op::mul, {scores, graph.add_constant(std::move(factor))});
  if (inputs.size() > 3 && inputs[3] != no_value) scores = graph.add(Op::add, {scores, inputs[3]});
  const ValueId weights = graph.add(Op::softmax, {scores}, {{"axis", std::int64_t{q.rank() - 1}}}, node.name);
  return graph.add(Op::matmul, {weights, inputs[2]}, {}, node.name);
}

}  // namespace

Graph divide_attention(const Graph& graph, const LoweringOptions& options) {
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    if (node.op != Op::attention || attention_has_template(graph, node, options) ||
        !attention_divides(graph, node, options))
      return false;
    rewriter.set(node.outputs[0], add_product_parts(rewriter.graph(), node, rewriter.mapped(node.inputs)));
    return true;
  });
}

}  // namespace sylvite
