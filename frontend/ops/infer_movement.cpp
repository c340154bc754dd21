// Type rules of operations that create or move elements.

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "frontend/ops/infer.h"

namespace sylvite {
namespace {

TensorType dense(DType dtype, Shape shape) {
  return {dtype, std::move(shape), {}};
}

}  // namespace

std::size_t checked_axis(const Attributes& attributes, int rank) {
  const std::int64_t axis = attributes.integer("axis");
  if (axis < 0 || axis >= rank) throw ModelError("axis {} is outside a value of rank {}", axis, rank);
  return static_cast<std::size_t>(axis);
}

const std::vector<std::int64_t>& checked_list(const Attributes& attributes, const std::string& name,
                                              std::size_t size, std::int64_t low, std::int64_t high) {
  const std::vector<std::int64_t>& list = attributes.integers(name);
  if (list.size() != size)
    throw ModelError("attribute {} has {} entries, expected {}", name, list.size(), size);
  for (std::int64_t entry : list)
    if (entry < low || entry > high)
      throw ModelError("attribute {} holds {}, expected {} to {}", name, entry, low, high);
  return list;
}

OutputTypes infer_iota(Op, InputTypes, const Attributes& attributes) {
  const TensorType result = make_type(parse_dtype(attributes.string("dtype")), attributes.integers("shape"));
  (void)result.element_count();
  (void)checked_axis(attributes, result.rank());
  if (!is_number(result.dtype)) throw ModelError("iota does not count in {}", dtype_name(result.dtype));
  return {result};
}

OutputTypes infer_reshape(Op, InputTypes inputs, const Attributes& attributes) {
  const TensorType result = make_type(inputs[0]->dtype, attributes.integers("shape"));
  if (result.element_count() != inputs[0]->element_count()) {
    throw ModelError("{} cannot take the shape {}: other element counts", inputs[0]->to_string(),
                     result.to_string());
  }
  return {result};
}

OutputTypes infer_transpose(Op, InputTypes inputs, const Attributes& attributes) {
  const auto rank = static_cast<std::size_t>(inputs[0]->rank());
  const auto& perm = checked_list(attributes, "perm", rank, 0, inputs[0]->rank() - 1);
  std::vector<bool> seen(rank, false);
  Shape shape;
  for (std::int64_t axis : perm) {
    const auto from = static_cast<std::size_t>(axis);
    if (seen[from]) throw ModelError("attribute perm names axis {} twice", axis);
    seen[from] = true;
    shape.push_back(inputs[0]->shape[from]);
  }
  return {dense(inputs[0]->dtype, std::move(shape))};
}

OutputTypes infer_broadcast_to(Op, InputTypes inputs, const Attributes& attributes) {
  const TensorType result = make_type(inputs[0]->dtype, attributes.integers("shape"));
  (void)result.element_count();
  if (!broadcasts_to(inputs[0]->shape, result.shape))
    throw ModelError("{} does not broadcast to {}", inputs[0]->to_string(), result.to_string());
  return {result};
}

OutputTypes infer_slice(Op, InputTypes inputs, const Attributes& attributes) {
  const auto rank = static_cast<std::size_t>(inputs[0]->rank());
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  const auto& starts = checked_list(attributes, "starts", rank, 0, most);
  const auto& sizes = checked_list(attributes, "sizes", rank, 0, most);
  const auto& steps = checked_list(attributes, "steps", rank, -extent_limit, extent_limit);
  const Dims extents = inputs[0]->dims();
  for (std::size_t i = 0; i < rank; ++i) {
    if (steps[i] == 0) throw ModelError("attribute steps holds 0");
    if (sizes[i] == 0) continue;
    const bool start_fits = starts[i] < extents[i];
    const std::int64_t room = steps[i] > 0 ? (extents[i] - 1 - starts[i]) / steps[i] : starts[i] / -steps[i];
    if (!start_fits || sizes[i] - 1 > room) {
      throw ModelError("start {}, size {}, step {} leave axis {} of {}", starts[i], sizes[i], steps[i], i,
                       inputs[0]->to_string());
    }
  }
  return {make_type(inputs[0]->dtype, sizes)};
}

OutputTypes infer_pad(Op, InputTypes inputs, const Attributes& attributes) {
  const TensorType& input = *inputs[0];
  const auto rank = static_cast<std::size_t>(input.rank());
  const auto& low = checked_list(attributes, "low", rank, -extent_limit, extent_limit);
  const auto& high = checked_list(attributes, "high", rank, -extent_limit, extent_limit);
  const bool has_interior = !attributes.integers("interior").empty();
  const Dims interior =
      has_interior ? checked_list(attributes, "interior", rank, 0, extent_limit) : Dims(rank, 0);
  const std::string& mode = attributes.string("mode");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    throw ModelError("attribute mode is '{}', expected constant, reflect, edge or wrap", mode);
  if (is_given(inputs, 1)) {
    if (inputs[1]->element_count() != 1)
      throw ModelError("the pad value is {}, expected one element", inputs[1]->to_string());
    require_same_dtype(input, *inputs[1], "the input and the pad value");
  }
  Dims result = input.dims();
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t extent = result[i];
    if (extent > extent_limit) throw UnsupportedError("pad of an axis of {} elements", extent);
    if (interior[i] > 0 && mode != "constant")
      throw ModelError("interior padding needs mode constant, got {}", mode);
    result[i] = low[i] + high[i] + extent + std::max<std::int64_t>(extent - 1, 0) * interior[i];
    if (result[i] < 0)
      throw ModelError("low {} and high {} cut off more than axis {} has", low[i], high[i], i);
    if (extent == 0 && result[i] > 0 && mode != "constant")
      throw ModelError("mode {} has nothing to repeat on axis {} of {}", mode, i, input.to_string());
  }
  (void)checked_product(result, "padded value");
  return {make_type(input.dtype, result)};
}

OutputTypes infer_concat(Op, InputTypes inputs, const Attributes& attributes) {
  TensorType result = *inputs[0];
  const std::size_t axis = checked_axis(attributes, result.rank());
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (!is_given(inputs, i)) throw ModelError("input {} is absent", i);
    const TensorType& input = *inputs[i];
    require_same_dtype(result, input, "the inputs");
    Shape expected = result.shape;
    if (input.rank() == result.rank()) expected[axis] = input.shape[axis];
    if (input.shape != expected)
      throw ModelError("{} and {} differ outside axis {}", inputs[0]->to_string(), input.to_string(), axis);
    if (!result.shape[axis].is_known() || !input.shape[axis].is_known())
      throw UnsupportedError("concat along an axis of unknown extent; give it a value with --dims");
    result.shape[axis].extent =
        checked_product({1, result.shape[axis].extent}, "concat") + input.shape[axis].extent;
  }
  return {result};
}

OutputTypes infer_to_layout(Op, InputTypes inputs, const Attributes& attributes) {
  const std::int64_t block = attributes.integer("block");
  if (block < 0 || block > 4096) throw ModelError("attribute block is {}, expected 0 to 4096", block);
  if (block > 0 && inputs[0]->rank() < 2)
    throw ModelError("{} has no channel dimension to block", inputs[0]->to_string());
  TensorType result = *inputs[0];
  result.layout.channel_block = static_cast<int>(block);
  return {result};
}

}  // namespace sylvite
