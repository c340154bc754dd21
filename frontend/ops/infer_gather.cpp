// Type rules of reads and writes at run-time indices.

#include <algorithm>

#include "base/error.h"
#include "frontend/ops/infer.h"

namespace sylvite {
namespace {

void require_indices(const TensorType& indices) {
  if (!is_signed_integer(indices.dtype) && !is_unsigned_integer(indices.dtype))
    throw ModelError("indices are {}, expected integers", indices.to_string());
}

/// Clamping needs at least one element to clamp to.
void require_elements(const TensorType& data, std::size_t axis, const Shape& indices, Symbols& symbols) {
  const bool has_indices = std::ranges::find(indices, Extent(0)) == indices.end();
  if (has_indices && !symbols.at_least(data.shape[axis], 1))
    throw ModelError("axis {} of {} has no elements to index", axis, data.to_string());
}

void require_reduction(const Attributes& attributes) {
  const std::string& reduction = attributes.string("reduction");
  for (const char* known : {"none", "add", "mul", "max", "min"})
    if (reduction == known) return;
  throw ModelError("attribute reduction is '{}', expected none, add, mul, max or min", reduction);
}

/// *_elements: indices have the rank of data, and no axis but `axis` is longer.
void require_element_indices(const TensorType& data, const TensorType& indices, std::size_t axis,
                             Symbols& symbols) {
  require_indices(indices);
  bool fits = data.rank() == indices.rank();
  for (std::size_t i = 0; fits && i < data.shape.size(); ++i)
    fits = i == axis || symbols.at_least(data.shape[i], indices.shape[i]);
  if (!fits) throw ModelError("indices {} do not fit {}", indices.to_string(), data.to_string());
  require_elements(data, axis, indices.shape, symbols);
}

/// *_nd: the number of axes that the last dim of indices addresses, after batch_dims shared ones.
std::size_t tuple_size(const TensorType& data, const TensorType& indices, std::size_t batch_dims,
                       Symbols& symbols) {
  require_indices(indices);
  if (indices.rank() < 1 || static_cast<std::size_t>(indices.rank()) <= batch_dims)
    throw ModelError("indices {} need more than {} dims", indices.to_string(), batch_dims);
  const std::int64_t size = indices.shape.back().known();
  if (size < 0 || static_cast<std::int64_t>(batch_dims) + size > data.rank()) {
    throw ModelError("index tuples of {} after {} batch dims do not fit {}", size, batch_dims,
                     data.to_string());
  }
  const Shape tuples(indices.shape.begin(), indices.shape.end() - 1);
  for (std::int64_t i = 0; i < size; ++i)
    require_elements(data, batch_dims + static_cast<std::size_t>(i), tuples, symbols);
  return static_cast<std::size_t>(size);
}

/// The leading dims of indices, then the dims of data that a tuple does not address.
Shape gathered_shape(const TensorType& data, const TensorType& indices, std::size_t addressed) {
  Shape shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.insert(shape.end(), data.shape.begin() + static_cast<std::ptrdiff_t>(addressed), data.shape.end());
  return shape;
}

}  // namespace

OutputTypes infer_gather(Op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  require_indices(*inputs[1]);
  const std::size_t axis = checked_axis(attributes, inputs[0]->rank());
  require_elements(*inputs[0], axis, inputs[1]->shape, symbols);
  const auto split = inputs[0]->shape.begin() + static_cast<std::ptrdiff_t>(axis);
  Shape shape(inputs[0]->shape.begin(), split);
  shape.insert(shape.end(), inputs[1]->shape.begin(), inputs[1]->shape.end());
  shape.insert(shape.end(), split + 1, inputs[0]->shape.end());
  TensorType result{inputs[0]->dtype, std::move(shape), {}};
  check_size(result);
  return {result};
}

OutputTypes infer_gather_elements(Op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  require_element_indices(*inputs[0], *inputs[1], checked_axis(attributes, inputs[0]->rank()), symbols);
  return {TensorType{inputs[0]->dtype, inputs[1]->shape, {}}};
}

OutputTypes infer_gather_nd(Op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  const std::int64_t batch_dims = attributes.integer("batch_dims");
  if (batch_dims < 0 || batch_dims > inputs[0]->rank())
    throw ModelError("batch_dims {} is outside a value of rank {}", batch_dims, inputs[0]->rank());
  const auto shared = static_cast<std::size_t>(batch_dims);
  const std::size_t size = tuple_size(*inputs[0], *inputs[1], shared, symbols);
  for (std::size_t i = 0; i < shared; ++i)
    if (!symbols.equal(inputs[0]->shape[i], inputs[1]->shape[i]))
      throw ModelError("batch dims of {} and {} differ", inputs[0]->to_string(), inputs[1]->to_string());
  TensorType result{inputs[0]->dtype, gathered_shape(*inputs[0], *inputs[1], shared + size), {}};
  check_size(result);
  return {result};
}

OutputTypes infer_scatter_elements(Op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  require_element_indices(*inputs[0], *inputs[1], checked_axis(attributes, inputs[0]->rank()), symbols);
  require_same_dtype(*inputs[0], *inputs[2], "the input and the updates");
  require_reduction(attributes);
  if (!symbols.equal(inputs[2]->shape, inputs[1]->shape)) {
    throw ModelError("updates {} and indices {} differ in shape", inputs[2]->to_string(),
                     inputs[1]->to_string());
  }
  return {TensorType{inputs[0]->dtype, inputs[0]->shape, {}}};
}

OutputTypes infer_scatter_nd(Op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  const std::size_t size = tuple_size(*inputs[0], *inputs[1], 0, symbols);
  require_same_dtype(*inputs[0], *inputs[2], "the input and the updates");
  require_reduction(attributes);
  const Shape expected = gathered_shape(*inputs[0], *inputs[1], size);
  if (!symbols.equal(inputs[2]->shape, expected)) {
    const TensorType wanted{inputs[0]->dtype, expected, {}};
    throw ModelError("updates are {}, expected {}", inputs[2]->to_string(), wanted.to_string());
  }
  return {TensorType{inputs[0]->dtype, inputs[0]->shape, {}}};
}

}  // namespace sylvite
