// Before: y = attention(q, k, v, mask)
// After:  y = matmul(softmax(matmul(q * scale, transpose(k)) + mask), v)

#include <cmath>
#include <utility>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/alone.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// Is all that it does in products, a softmax and a sum, over batches of equal extents?
bool is_plain(const Graph& graph, const Node& node) {
  const TensorType &q = graph.type(node.inputs[0]), &k = graph.type(node.inputs[1]);
  const TensorType& v = graph.type(node.inputs[2]);
  const bool has_mask = node.inputs.size() > 3 && node.inputs[3] != no_value;
  const auto same_batch = [&](const TensorType& other) {
    return other.rank() == q.rank() && std::equal(q.shape.begin(), q.shape.end() - 2, other.shape.begin());
  };
  return node.attributes.integer("causal") == 0 && node.attributes.real("softcap") == 0 && q.rank() > 2 &&
         same_batch(k) && same_batch(v) && q.element_count() != 0 && k.element_count() != 0 &&
         (!has_mask || graph.type(node.inputs[3]).dtype == q.dtype);
}

/// Its first product by itself.
Kernel product_alone(const Graph& graph, const Node& node) {
  Graph body;
  const ValueId q = body.add_input("q", graph.type(node.inputs[0]));
  const ValueId k = body.add_input("k", graph.type(node.inputs[1]));
  body.outputs = {body.add(
      Op::matmul, {q, body.add(Op::transpose, {k}, {{"perm", last_two_swapped(body.type(k).rank())}})})};
  return make_kernel(body, {false, false});
}

bool is_better_divided(const Graph& graph, const Node& node, const LoweringOptions& options) {
  return is_plain(graph, node) && !options.refuse_template(kernel_alone(graph, node)).empty() &&
         options.refuse_template(product_alone(graph, node)).empty();
}

ValueId add_products(Graph& graph, const Node& node, const std::vector<ValueId>& inputs) {
  const TensorType q = graph.type(inputs[0]);
  double scale = node.attributes.real("scale");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(q.dims().back()));
  Tensor factor(q.dtype, {});
  factor.set_double(0, scale);
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
    if (node.op != Op::attention || !is_better_divided(graph, node, options)) return false;
    rewriter.set(node.outputs[0], add_products(rewriter.graph(), node, rewriter.mapped(node.inputs)));
    return true;
  });
}

}  // namespace sylvite
