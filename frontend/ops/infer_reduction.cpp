// Type rules of reductions, scans, orderings and normalisations.

#include <algorithm>

#include "base/error.h"
#include "frontend/ops/infer.h"

namespace sylvite {
namespace {

void require_float(const TensorType& type) {
  if (!is_float(type.dtype)) throw ModelError("got {}, expected floats", type.to_string());
}

void require_numbers(const TensorType& type) {
  if (!is_number(type.dtype)) throw ModelError("got {}, expected numbers", type.to_string());
}

bool keeps_dims(const Attributes& attributes) {
  const std::int64_t value = attributes.integer("keepdims");
  if (value != 0 && value != 1) throw ModelError("attribute keepdims is {}, expected 0 or 1", value);
  return value == 1;
}

/// The shape after reducing sorted axes. A blocked layout stays when the channel dimension does.
TensorType reduced_type(const TensorType& input, DType dtype, const std::vector<std::int64_t>& axes,
                        bool keep) {
  TensorType result;
  result.dtype = dtype;
  for (std::size_t i = 0; i < input.shape.size(); ++i) {
    const bool reduced = std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(i));
    if (!reduced)
      result.shape.push_back(input.shape[i]);
    else if (keep)
      result.shape.emplace_back(1);
  }
  const bool keeps_channels = keep && !std::binary_search(axes.begin(), axes.end(), 1);
  if (keeps_channels) result.layout = input.layout;
  return result;
}

}  // namespace

OutputTypes infer_reduce(Op op, InputTypes inputs, const Attributes& attributes, Symbols&) {
  const TensorType& input = *inputs[0];
  if (op == Op::reduce_sum || op == Op::reduce_prod) require_numbers(input);
  const std::vector<std::int64_t>& axes = attributes.integers("axes");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0 || axes[i] >= input.rank())
      throw ModelError("axis {} is outside a value of rank {}", axes[i], input.rank());
    if (i > 0 && axes[i] <= axes[i - 1]) throw ModelError("attribute axes is not sorted and unique");
  }
  return {reduced_type(input, input.dtype, axes, keeps_dims(attributes))};
}

OutputTypes infer_arg_reduce(Op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  require_numbers(*inputs[0]);
  const std::size_t axis = checked_axis(attributes, inputs[0]->rank());
  if (!symbols.at_least(inputs[0]->shape[axis], 1))
    throw ModelError("axis {} of {} has no elements to choose from", axis, inputs[0]->to_string());
  return {reduced_type(*inputs[0], DType::i64, {static_cast<std::int64_t>(axis)}, keeps_dims(attributes))};
}

OutputTypes infer_scan(Op, InputTypes inputs, const Attributes& attributes, Symbols&) {
  require_numbers(*inputs[0]);
  (void)checked_axis(attributes, inputs[0]->rank());
  return {TensorType{inputs[0]->dtype, inputs[0]->shape, {}}};
}

OutputTypes infer_top_k(Op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  require_numbers(*inputs[0]);
  const std::size_t axis = checked_axis(attributes, inputs[0]->rank());
  const Extent k = checked_extents(attributes, "k", 1, 0, extent_limit)[0];
  TensorType values{inputs[0]->dtype, inputs[0]->shape, {}};
  if (!symbols.at_least(values.shape[axis], k))
    throw ModelError("k is {}, axis {} of {} has fewer", k.to_string(), axis, inputs[0]->to_string());
  values.shape[axis] = k;
  TensorType indices = values;
  indices.dtype = DType::i64;
  return {values, indices};
}

OutputTypes infer_softmax(Op, InputTypes inputs, const Attributes& attributes, Symbols&) {
  require_float(*inputs[0]);
  (void)checked_axis(attributes, inputs[0]->rank());
  return {TensorType{inputs[0]->dtype, inputs[0]->shape, {}}};
}

OutputTypes infer_axis_norm(Op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  require_float(*inputs[0]);
  const std::size_t axis = checked_axis(attributes, inputs[0]->rank());
  const Shape normalised(inputs[0]->shape.begin() + static_cast<std::ptrdiff_t>(axis),
                         inputs[0]->shape.end());
  if (attributes.has("groups")) {
    const std::int64_t groups = attributes.integer("groups");
    if (groups < 1 || !normalised[0].is_known() || normalised[0].known() % groups != 0)
      throw ModelError("dim {} of {} is no {} groups", axis, inputs[0]->to_string(), groups);
    if (inputs.size() > 1) throw ModelError("a norm of groups has neither scale nor bias");
  }
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (!is_given(inputs, i)) continue;
    require_parameter_dtype(*inputs[0], *inputs[i], "the input and its scale or bias");
    if (!broadcasts_to(inputs[i]->shape, normalised, symbols)) {
      throw ModelError("{} does not broadcast to the normalised dims of {}", inputs[i]->to_string(),
                       inputs[0]->to_string());
    }
  }
  return {TensorType{inputs[0]->dtype, inputs[0]->shape, {}}};
}

OutputTypes infer_batch_norm(Op, InputTypes inputs, const Attributes&, Symbols& symbols) {
  require_float(*inputs[0]);
  if (inputs[0]->rank() < 2) throw ModelError("{} has no channel dimension", inputs[0]->to_string());
  for (const TensorType* parameter : inputs.subspan(1)) {
    require_parameter_dtype(*inputs[0], *parameter, "the input and its parameters");
    if (parameter->rank() != 1 || !symbols.equal(parameter->shape[0], inputs[0]->shape[1])) {
      throw ModelError("parameter {} does not fit the channels of {}", parameter->to_string(),
                       inputs[0]->to_string());
    }
  }
  return {*inputs[0]};
}

}  // namespace sylvite
