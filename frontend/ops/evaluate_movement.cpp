// Reference semantics of operations that create or move elements.

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "frontend/ops/evaluate.h"
#include "frontend/values/storage.h"

namespace sylvite {
namespace {

/// Sets every element of the result to one value.
void fill(Tensor& result, const Tensor& value) {
  const StridedCopy copy{result.dims(), Dims(result.dims().size(), 0), 0, dense_strides(result.dims()), 0};
  copy_strided(copy, value.data(), result.mutable_data(), dtype_size(result.dtype()));
}

std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  return (a % b + b) % b;
}

/// Where position p of an axis of that extent (which may be outside it) reads from.
std::int64_t source_position(std::int64_t p, std::int64_t extent, const std::string& mode) {
  if (mode == "edge") return std::clamp<std::int64_t>(p, 0, extent - 1);
  if (mode == "wrap") return floor_mod(p, extent);
  if (extent == 1) return 0;
  const std::int64_t period = 2 * (extent - 1);
  const std::int64_t q = floor_mod(p, period);
  return q < extent ? q : period - q;
}

/// Border modes: one axis at a time, each output slice is a copy of an input slice.
Tensor pad_axis(const Tensor& input, std::size_t axis, std::int64_t low, std::int64_t extent,
                const std::string& mode) {
  Dims dims = input.dims();
  const AxisView from = view_axis(dims, static_cast<std::int64_t>(axis));
  dims[axis] = extent;
  Tensor result(input.dtype(), dims);
  const auto slice_bytes = static_cast<std::size_t>(from.inner) * dtype_size(input.dtype());
  if (slice_bytes == 0) return result;
  const auto* source = static_cast<const std::byte*>(input.data());
  auto* target = static_cast<std::byte*>(result.mutable_data());
  for (std::int64_t outer = 0; outer < from.outer; ++outer) {
    for (std::int64_t i = 0; i < extent; ++i) {
      const std::int64_t position = outer * from.extent + source_position(i - low, from.extent, mode);
      std::memcpy(target, source + static_cast<std::size_t>(position) * slice_bytes, slice_bytes);
      target += slice_bytes;
    }
  }
  return result;
}

/// Constant mode: the part of the input that survives negative padding lands with a stride in a filled
/// result.
Tensor pad_constant(const Tensor& input, const Tensor* value, const Dims& dims, const Dims& low,
                    const Dims& interior) {
  Tensor result(input.dtype(), dims);
  if (value != nullptr) fill(result, *value);
  const Dims strides = dense_strides(input.dims());
  const Dims target_strides = dense_strides(dims);
  StridedCopy copy;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t step = interior[i] + 1;
    const std::int64_t first = low[i] >= 0 ? 0 : (-low[i] + step - 1) / step;
    const std::int64_t room = dims[i] - 1 - low[i];
    const std::int64_t last = std::min(input.dims()[i] - 1, room < 0 ? -1 : room / step);
    copy.dims.push_back(std::max<std::int64_t>(last - first + 1, 0));
    copy.strides.push_back(strides[i]);
    copy.offset += first * strides[i];
    copy.target_strides.push_back(target_strides[i] * step);
    copy.target_offset += (low[i] + first * step) * target_strides[i];
  }
  copy_strided(copy, input.data(), result.mutable_data(), dtype_size(input.dtype()));
  return result;
}

}  // namespace

OutputTensors evaluate_iota(Op, InputTensors, const Attributes& attributes, ResultTypes types) {
  Tensor result(types[0].dtype, types[0].dims());
  const AxisView view = view_axis(result.dims(), attributes.integer("axis"));
  if (result.size() == 0) return {result};
  with_storage(result.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto* element = static_cast<T*>(result.mutable_data());
    for (std::int64_t outer = 0; outer < view.outer; ++outer)
      for (std::int64_t i = 0; i < view.extent; ++i)
        element = std::fill_n(element, view.inner, convert_element<T>(i));
  });
  return {result};
}

OutputTensors evaluate_extents(Op, InputTensors, const Attributes& attributes, ResultTypes types) {
  const Dims& values = attributes.integers("values");
  const bool is_inverse = attributes.integer("inverse") != 0, is_half = attributes.has("half");
  const auto fraction = [&](double value) { return is_inverse ? 1.0 / value : is_half ? value / 2 : value; };
  Tensor result(types[0].dtype, types[0].dims());
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const std::int64_t value = values[static_cast<std::size_t>(i)];
    if (is_float(result.dtype()))
      result.set_double(i, fraction(static_cast<double>(value)));
    else
      result.set_int64(i, value);
  }
  return {result};
}

OutputTensors evaluate_identity(Op, InputTensors inputs, const Attributes&, ResultTypes) {
  return {*inputs[0]};
}

OutputTensors evaluate_reshape(Op, InputTensors inputs, const Attributes&, ResultTypes types) {
  return {inputs[0]->reshaped(types[0].dims())};
}

OutputTensors evaluate_transpose(Op, InputTensors inputs, const Attributes& attributes, ResultTypes) {
  return {transposed(*inputs[0], attributes.integers("perm"))};
}

OutputTensors evaluate_broadcast_to(Op, InputTensors inputs, const Attributes&, ResultTypes types) {
  return {expand(*inputs[0], types[0].dims())};
}

OutputTensors evaluate_slice(Op, InputTensors inputs, const Attributes& attributes, ResultTypes types) {
  Tensor result(types[0].dtype, types[0].dims());
  const auto& starts = attributes.integers("starts");
  const auto& steps = attributes.integers("steps");
  StridedCopy copy{result.dims(), dense_strides(inputs[0]->dims()), 0, dense_strides(result.dims()), 0};
  for (std::size_t i = 0; i < starts.size(); ++i) {
    copy.offset += starts[i] * copy.strides[i];
    copy.strides[i] *= steps[i];
  }
  copy_strided(copy, inputs[0]->data(), result.mutable_data(), dtype_size(result.dtype()));
  return {result};
}

OutputTensors evaluate_pad(Op, InputTensors inputs, const Attributes& attributes, ResultTypes types) {
  const Dims dims = types[0].dims();
  const Dims& low = attributes.integers("low");
  Dims interior = attributes.integers("interior");
  interior.resize(dims.size(), 0);
  const std::string& mode = attributes.string("mode");
  if (mode == "constant") return {pad_constant(*inputs[0], optional_input(inputs, 1), dims, low, interior)};
  Tensor result = *inputs[0];
  for (std::size_t axis = 0; axis < dims.size(); ++axis)
    result = pad_axis(result, axis, low[axis], dims[axis], mode);
  return {result};
}

OutputTensors evaluate_concat(Op, InputTensors inputs, const Attributes& attributes, ResultTypes types) {
  Tensor result(types[0].dtype, types[0].dims());
  const auto axis = static_cast<std::size_t>(attributes.integer("axis"));
  const Dims strides = dense_strides(result.dims());
  std::int64_t position = 0;
  for (const Tensor* input : inputs) {
    const StridedCopy copy{input->dims(), dense_strides(input->dims()), 0, strides, position * strides[axis]};
    copy_strided(copy, input->data(), result.mutable_data(), dtype_size(result.dtype()));
    position += input->dims()[axis];
  }
  return {result};
}

}  // namespace sylvite
