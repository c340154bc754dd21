#include "lowering/passes/images.h"

#include <algorithm>

#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"

namespace sylvite {

bool may_lie_innermost(const TensorType& type, bool tf32) {
  const bool is_known =
      type.dtype == DType::bf16 || type.dtype == DType::f16 || (tf32 && type.dtype == DType::f32);
  return is_known && type.rank() == 4 && type.element_count() != 0 && type.dims()[1] % 4 == 0;
}

IdMap<bool> innermost_images(const Graph& graph, bool tf32) {
  IdMap<bool> images(graph.values().size(), false);
  for (const Node& node : graph.nodes()) {
    if (node.outputs.size() != 1 || !may_lie_innermost(graph.type(node.outputs[0]), tf32)) continue;
    const bool follows = has_trait(node.op, OpTrait::pointwise) || has_trait(node.op, OpTrait::pooling);
    images[node.outputs[0]] =
        node.op == Op::conv || (follows && std::ranges::any_of(node.inputs, [&](ValueId id) {
                                  return id != no_value && images[id];
                                }));
  }
  return images;
}

Tensor with_zeros_behind(const Tensor& tensor, const Dims& dims) {
  Tensor result(tensor.dtype(), dims);
  const Dims& from = tensor.dims();
  const Dims strides = dense_strides(dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    std::int64_t rest = i, to = 0;
    for (std::size_t d = from.size(); d-- > 0; rest /= from[d]) to += rest % from[d] * strides[d];
    result.set_double(to, tensor.as_double(i));
  }
  return result;
}

}  // namespace sylvite
