#include "frontend/graph/evaluation_work.h"

#include <algorithm>

namespace sylvite {
namespace {

std::int64_t window_size(const Dims& dims) {
  return checked_product(Dims(dims.begin() + 1, dims.end()), "window");
}

}  // namespace

std::int64_t evaluation_work(const Graph& graph, const Node& node) {
  std::int64_t outputs = 0;
  std::int64_t inputs = 0;
  for (ValueId id : node.outputs) outputs += graph.type(id).element_count();
  for (ValueId id : node.inputs)
    if (id != no_value) inputs += graph.type(id).element_count();
  double factor = 1;
  if (has_trait(node.op, OpTrait::matmul))
    factor = static_cast<double>(graph.type(node.inputs[0]).dims().back());
  if (node.op == Op::conv) factor = static_cast<double>(window_size(graph.type(node.inputs[1]).dims()));
  if (node.op == Op::max_pool || node.op == Op::avg_pool)
    factor = static_cast<double>(checked_product(node.attributes.integers("kernel"), "kernel"));
  if (node.op == Op::attention) factor = static_cast<double>(inputs);
  const double work = static_cast<double>(inputs) + static_cast<double>(outputs) * std::max(factor, 1.0);
  return work > 1e18 ? std::int64_t{1} << 60 : static_cast<std::int64_t>(work);
}

}  // namespace sylvite
