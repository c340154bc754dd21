#include "lowering/passes/attention_forms.h"

#include <algorithm>

#include "frontend/graph/views.h"
#include "lowering/passes/alone.h"

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

}  // namespace

bool attention_has_template(const Graph& graph, const Node& node, const LoweringOptions& options) {
  return options.refuse_template(kernel_alone(graph, node)).empty();
}

bool attention_divides(const Graph& graph, const Node& node, const LoweringOptions& options) {
  return is_plain(graph, node) && options.refuse_template(product_alone(graph, node)).empty();
}

}  // namespace sylvite
