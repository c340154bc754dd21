// Reference semantics of reads and writes at run-time indices. A negative index counts from the end; one out
// of range is clamped to the nearest element.

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "frontend/ops/evaluate.h"
#include "frontend/values/copy_of.h"
#include "frontend/values/storage.h"

namespace sylvite {
namespace {

std::int64_t clamp_index(std::int64_t index, std::int64_t extent) {
  return std::clamp<std::int64_t>(index < 0 ? index + extent : index, 0, extent - 1);
}

/// Offset in elements, within data of these dims and strides, of the slice that index tuple `tuple` of `size` axes names.
std::int64_t tuple_offset(const std::int64_t* tuple, std::size_t size, const Dims& dims, const Dims& strides,
                          std::size_t first_axis) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t axis = first_axis + i;
    offset += clamp_index(tuple[i], dims[axis]) * strides[axis];
  }
  return offset;
}

std::int64_t product(Dims::const_iterator begin, Dims::const_iterator end) {
  return checked_product(Dims(begin, end), "slice");
}

/// Calls visit(i, position) for each element i of `indices` (dims `counts`): `position` is in data of these dims, where the
/// element's own index replaces the coordinate along `axis`.
template <typename Visit>
void for_positions(const std::vector<std::int64_t>& indices, const Dims& counts, const Dims& dims,
                   std::size_t axis, const Visit& visit) {
  const Dims strides = dense_strides(dims);
  const std::int64_t row = counts.back(), step = axis + 1 == dims.size() ? 0 : 1;
  const auto size = static_cast<std::int64_t>(indices.size());
  for (std::int64_t begin = 0; begin < size; begin += row) {
    std::int64_t base = 0, rest = begin / row;
    for (std::size_t i = dims.size() - 1; i-- > 0; rest /= counts[i])
      if (i != axis) base += rest % counts[i] * strides[i];
    for (std::int64_t j = 0; j < row; ++j) {
      const std::int64_t index = clamp_index(indices[static_cast<std::size_t>(begin + j)], dims[axis]);
      visit(begin + j, base + j * step + index * strides[axis]);
    }
  }
}

template <typename C>
C combine(C old_value, C update, const std::string& reduction) {
  if (reduction == "add") return old_value + update;
  if (reduction == "mul") return old_value * update;
  if (old_value != old_value) return old_value;
  if (update != update) return update;
  return reduction == "max" ? std::max(old_value, update) : std::min(old_value, update);
}

/// Combines update element `from` with element `to` of the result. Integers that are added or multiplied wrap around.
void write_element(Tensor& result, std::int64_t to, const Tensor& updates, std::int64_t from,
                   const std::string& reduction) {
  const bool wraps = reduction == "add" || reduction == "mul";
  with_storage(result.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T& target = result.mutable_view<T>()[static_cast<std::size_t>(to)];
    const T update = updates.view<T>()[static_cast<std::size_t>(from)];
    if constexpr (std::is_integral_v<T>) {
      // Sums and products as unsigned words: the low bits are the same for signed ones.
      using C = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
      const std::uint64_t word = combine<std::uint64_t>(target, update, reduction);
      target = wraps ? convert_element<T>(word) : convert_element<T>(combine<C>(target, update, reduction));
    } else {
      target = convert_element<T>(
          combine(convert_element<double>(target), convert_element<double>(update), reduction));
    }
  });
}

/// Of so many bytes, where they are few: a call for each would take longer than the copy.
template <std::size_t fixed_bytes>
void copy_slices(const AxisView& view, const std::vector<std::int64_t>& indices, const std::byte* source,
                 std::byte* target, std::size_t slice_bytes) {
  const std::size_t bytes = fixed_bytes > 0 ? fixed_bytes : slice_bytes;
  for (std::int64_t outer = 0; outer < view.outer; ++outer) {
    for (const std::int64_t index : indices) {
      const std::int64_t slice = outer * view.extent + clamp_index(index, view.extent);
      std::memcpy(target, source + static_cast<std::size_t>(slice) * bytes, bytes);
      target += bytes;
    }
  }
}

}  // namespace

OutputTensors evaluate_gather(Op, InputTensors inputs, const Attributes& attributes, ResultTypes types) {
  Tensor result(types[0].dtype, types[0].dims());
  const AxisView view = view_axis(inputs[0]->dims(), attributes.integer("axis"));
  const auto slice_bytes = static_cast<std::size_t>(view.inner) * dtype_size(result.dtype());
  if (result.size() == 0) return {result};
  const auto copy = slice_bytes == 4 ? copy_slices<4> : slice_bytes == 8 ? copy_slices<8> : copy_slices<0>;
  copy(view, inputs[1]->to_int64s(), static_cast<const std::byte*>(inputs[0]->data()),
       static_cast<std::byte*>(result.mutable_data()), slice_bytes);
  return {result};
}

OutputTensors evaluate_gather_elements(Op, InputTensors inputs, const Attributes& attributes,
                                       ResultTypes types) {
  Tensor result(types[0].dtype, types[0].dims());
  const auto axis = static_cast<std::size_t>(attributes.integer("axis"));
  with_bits(dtype_size(result.dtype()), [&](auto zero) {
    const auto* from = static_cast<const decltype(zero)*>(inputs[0]->data());
    auto* to = static_cast<decltype(zero)*>(result.mutable_data());
    for_positions(inputs[1]->to_int64s(), result.dims(), inputs[0]->dims(), axis,
                  [&](std::int64_t i, std::int64_t position) { to[i] = from[position]; });
  });
  return {result};
}

OutputTensors evaluate_gather_nd(Op, InputTensors inputs, const Attributes& attributes, ResultTypes types) {
  Tensor result(types[0].dtype, types[0].dims());
  if (result.size() == 0) return {result};
  const Dims& dims = inputs[0]->dims();
  const Dims& counts = inputs[1]->dims();
  const auto batch_dims = static_cast<std::ptrdiff_t>(attributes.integer("batch_dims"));
  const auto size = static_cast<std::size_t>(counts.back());
  const std::vector<std::int64_t> indices = inputs[1]->to_int64s();
  const std::int64_t batches = product(counts.begin(), counts.begin() + batch_dims);
  const std::int64_t tuples = product(counts.begin() + batch_dims, counts.end() - 1);
  const std::int64_t batch_size = product(dims.begin() + batch_dims, dims.end());
  const std::int64_t slice = product(dims.begin() + batch_dims + counts.back(), dims.end());
  const auto slice_bytes = static_cast<std::size_t>(slice) * dtype_size(result.dtype());
  const Dims strides = dense_strides(dims);
  const auto* source = static_cast<const std::byte*>(inputs[0]->data());
  auto* target = static_cast<std::byte*>(result.mutable_data());
  for (std::int64_t i = 0; i < batches * tuples; ++i) {
    const std::int64_t* tuple = indices.data() + static_cast<std::size_t>(i) * size;
    const std::int64_t from = i / tuples * batch_size +
                              tuple_offset(tuple, size, dims, strides, static_cast<std::size_t>(batch_dims));
    std::memcpy(target, source + static_cast<std::size_t>(from) * dtype_size(result.dtype()), slice_bytes);
    target += slice_bytes;
  }
  return {result};
}

OutputTensors evaluate_scatter_elements(Op, InputTensors inputs, const Attributes& attributes, ResultTypes) {
  Tensor result = copy_of(*inputs[0]);
  const auto axis = static_cast<std::size_t>(attributes.integer("axis"));
  const std::string& reduction = attributes.string("reduction");
  const std::vector<std::int64_t> indices = inputs[1]->to_int64s();
  if (reduction != "none") {
    for_positions(indices, inputs[1]->dims(), result.dims(), axis, [&](std::int64_t i, std::int64_t to) {
      write_element(result, to, *inputs[2], i, reduction);
    });
    return {result};
  }
  with_bits(dtype_size(result.dtype()), [&](auto zero) {
    const auto* updates = static_cast<const decltype(zero)*>(inputs[2]->data());
    auto* target = static_cast<decltype(zero)*>(result.mutable_data());
    for_positions(indices, inputs[1]->dims(), result.dims(), axis,
                  [&](std::int64_t i, std::int64_t to) { target[to] = updates[i]; });
  });
  return {result};
}

OutputTensors evaluate_scatter_nd(Op, InputTensors inputs, const Attributes& attributes, ResultTypes) {
  Tensor result = copy_of(*inputs[0]);
  const std::string& reduction = attributes.string("reduction");
  const Dims& dims = result.dims();
  const auto size = static_cast<std::size_t>(inputs[1]->dims().back());
  const std::int64_t slice = product(dims.begin() + static_cast<std::ptrdiff_t>(size), dims.end());
  if (slice == 0) return {result};
  const std::vector<std::int64_t> indices = inputs[1]->to_int64s();
  const std::int64_t tuples = inputs[2]->size() / slice;
  const Dims strides = dense_strides(dims);
  const std::size_t slice_bytes = static_cast<std::size_t>(slice) * dtype_size(result.dtype());
  const auto* updates = static_cast<const std::byte*>(inputs[2]->data());
  auto* target = static_cast<std::byte*>(result.mutable_data());
  for (std::int64_t i = 0; i < tuples; ++i) {
    const std::int64_t to =
        tuple_offset(indices.data() + static_cast<std::size_t>(i) * size, size, dims, strides, 0);
    if (reduction == "none") {
      std::memcpy(target + static_cast<std::size_t>(to) * dtype_size(result.dtype()),
                  updates + static_cast<std::size_t>(i) * slice_bytes, slice_bytes);
      continue;
    }
    for (std::int64_t j = 0; j < slice; ++j)
      write_element(result, to + j, *inputs[2], i * slice + j, reduction);
  }
  return {result};
}

}  // namespace sylvite
