#pragma once
// Reference semantics of the op table, grouped by family: slow and clear, over dense row-major tensors. Float
// arithmetic is done in double and rounded once to the element type; integers wrap around.
//
// REQUIRES inputs and outputs to be as the op's infer rule says. An absent optional input is a nullptr or
// missing at the end.

#include <span>
#include <vector>

#include "frontend/ops/op_table.h"
#include "frontend/values/strided.h"
#include "sylvite/attributes.h"
#include "sylvite/tensor.h"

namespace sylvite {

using InputTensors = std::span<const Tensor* const>;
using OutputTensors = std::vector<Tensor>;
using ResultTypes = std::span<const TensorType>;

[[nodiscard]] OutputTensors evaluate_unary(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_classify(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_cast(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_bitcast(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_binary(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_compare(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_where(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_round(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_random_bits(Op, InputTensors, const Attributes&, ResultTypes);

[[nodiscard]] OutputTensors evaluate_iota(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_extents(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_reshape(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_transpose(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_broadcast_to(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_slice(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_pad(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_concat(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_identity(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_gather(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_gather_elements(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_gather_nd(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_scatter_elements(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_scatter_nd(Op, InputTensors, const Attributes&, ResultTypes);

[[nodiscard]] OutputTensors evaluate_reduce(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_arg_reduce(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_scan(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_top_k(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_softmax(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_axis_norm(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_batch_norm(Op, InputTensors, const Attributes&, ResultTypes);

[[nodiscard]] OutputTensors evaluate_matmul(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_quantized_matmul(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_matmul_bits(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_conv(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_max_pool_gradient(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_attention_sums(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_attention_gradient(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_filter_gradient(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_pool(Op, InputTensors, const Attributes&, ResultTypes);
[[nodiscard]] OutputTensors evaluate_attention(Op, InputTensors, const Attributes&, ResultTypes);

/// Optional input i, or nullptr.
[[nodiscard]] inline const Tensor* optional_input(InputTensors inputs, std::size_t i) {
  return i < inputs.size() ? inputs[i] : nullptr;
}

}  // namespace sylvite
