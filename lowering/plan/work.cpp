#include "lowering/plan/work.h"

#include <algorithm>

#include "frontend/graph/evaluation_work.h"

namespace sylvite {
namespace {

double elements(const TensorType& type) {
  return static_cast<double>(type.element_count());
}

/// Depthwise convolutions multiply in f32 whatever is stored.
DType multiplied(const Graph& graph, const Node& node) {
  if (node.op == Op::quantized_matmul) return DType::i8;
  const bool is_grouped = node.op == Op::conv && graph.type(node.inputs[1]).dims()[1] == 1;
  return is_grouped ? DType::f32 : graph.type(node.inputs[0]).dtype;
}

double bytes_read(const Graph& graph, ValueId input) {
  double gathered = 0;
  for (const Node& node : graph.nodes()) {
    const bool reads = std::ranges::find(node.inputs, input) != node.inputs.end();
    if (!reads) continue;
    if (node.op != Op::gather || node.inputs[0] != input)
      return static_cast<double>(graph.type(input).byte_size());
    gathered +=
        elements(graph.type(node.outputs[0])) * static_cast<double>(dtype_size(graph.type(input).dtype));
  }
  return std::min(gathered, static_cast<double>(graph.type(input).byte_size()));
}

}  // namespace

Work work_of(const Kernel& kernel) {
  const Graph& body = kernel.body;
  Work work;
  for (const Node& node : body.nodes()) {
    const TensorType& result = body.type(node.outputs[0]);
    const double products = products_of(body, node);
    if (products > 0) work.element = multiplied(body, node);
    if (products > 0 || is_float(result.dtype))
      work.operations += elements(result) * std::max(1.0, 2 * products);
  }
  for (std::size_t i = 0; i < body.inputs.size(); ++i) {
    const double bytes = bytes_read(body, body.inputs[i]);
    work.bytes += bytes;
    if (kernel.input_is_weight[i]) work.weight_bytes += bytes;
  }
  for (const ValueId output : body.outputs) work.bytes += static_cast<double>(body.type(output).byte_size());
  return work;
}

}  // namespace sylvite
