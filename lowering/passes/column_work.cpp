#include "lowering/passes/column_work.h"

#include <algorithm>

#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

bool is_vector(const Graph& graph, ValueId id, std::int64_t width) {
  const TensorType& type = graph.type(id);
  if (!graph.is_constant(id)) return false;
  return type.element_count() == 1 || (type.element_count() == width && type.dims().back() == width);
}

}  // namespace

bool works_by_columns(const Graph& graph, const Node& node, ValueId x) {
  const Dims dims = graph.type(x).dims();
  return !dims.empty() && has_trait(node.op, OpTrait::pointwise) &&
         graph.type(node.outputs[0]).dims() == dims && std::ranges::all_of(node.inputs, [&](ValueId id) {
           return id == x || is_vector(graph, id, dims.back());
         });
}

}  // namespace sylvite
