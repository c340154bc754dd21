#include "frontend/values/strided.h"

#include <algorithm>
#include <cstring>

#include "base/parts.h"
#include "frontend/values/storage.h"

namespace sylvite {
namespace {

template <typename T>
void copy_row(const T* source, std::int64_t stride, T* target, std::int64_t target_stride,
              std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) target[i * target_stride] = source[i * stride];
}

void copy_row_bytes(const std::byte* source, std::int64_t stride, std::byte* target,
                    std::int64_t target_stride, std::int64_t count, std::size_t element_size) {
  if (stride == 1 && target_stride == 1) {
    std::memcpy(target, source, static_cast<std::size_t>(count) * element_size);
    return;
  }
  with_bits(element_size, [&](auto zero) {
    using T = decltype(zero);
    copy_row(reinterpret_cast<const T*>(source), stride, reinterpret_cast<T*>(target), target_stride, count);
  });
}

/// Rows of the result, innermost axis whole, some at a time: they often share the cache lines that they read. Of those,
/// parts of `block` elements, since each may be of a page of its own.
template <typename Element>
void transpose_rows(const Element* from, Element* to, const Dims& out_dims, const Dims& in_strides,
                    std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t together = 64, block = 16;
  const std::size_t rank = out_dims.size();
  const std::int64_t inner = out_dims.back(), step = in_strides.back();
  const std::int64_t line = rank > 1 ? out_dims[rank - 2] : 1,
                     line_step = rank > 1 ? in_strides[rank - 2] : 0;
  std::int64_t in_line = 0;  // how many rows of this line follow
  const Element* next = nullptr;
  for (std::int64_t row = begin; row < end; row += together) {
    const std::int64_t rows = std::min(together, end - row);
    const Element* sources[together];
    for (std::int64_t r = 0; r < rows; ++r, --in_line, next += line_step) {
      if (in_line == 0) {
        std::int64_t rest = row + r, offset = 0;
        for (std::size_t axis = rank - 1; axis-- > 0; rest /= out_dims[axis])
          offset += rest % out_dims[axis] * in_strides[axis];
        next = from + offset;
        in_line = line - (row + r) % line;
      }
      sources[r] = next;
    }
    if (step == 1) {
      for (std::int64_t r = 0; r < rows; ++r)
        std::memcpy(to + (row + r) * inner, sources[r], static_cast<std::size_t>(inner) * sizeof(Element));
      continue;
    }
    for (std::int64_t first = 0; first < inner; first += block) {
      const std::int64_t count = std::min(block, inner - first);
      for (std::int64_t r = 0; r < rows; ++r) {
        const Element* source = sources[r] + first * step;
        Element* target = to + (row + r) * inner + first;
        for (std::int64_t i = 0; i < count; ++i) target[i] = source[i * step];
      }
    }
  }
}

/// The same copy, with axes as one that both sides walk through alike: rows are long then.
StridedCopy merged(const StridedCopy& copy) {
  StridedCopy result{{}, {}, copy.offset, {}, copy.target_offset};
  for (std::size_t i = 0; i < copy.dims.size(); ++i) {
    const std::int64_t extent = copy.dims[i];
    if (extent == 1) continue;
    const bool is_alike = !result.dims.empty() && result.strides.back() == copy.strides[i] * extent &&
                          result.target_strides.back() == copy.target_strides[i] * extent;
    if (is_alike) {
      result.dims.back() *= extent;
      result.strides.back() = copy.strides[i];
      result.target_strides.back() = copy.target_strides[i];
    } else {
      result.dims.push_back(extent);
      result.strides.push_back(copy.strides[i]);
      result.target_strides.push_back(copy.target_strides[i]);
    }
  }
  return result;
}

}  // namespace

Dims permuted(const Dims& dims, const Dims& perm) {
  Dims result;
  for (const std::int64_t axis : perm) result.push_back(dims[static_cast<std::size_t>(axis)]);
  return result;
}

Tensor transposed(const Tensor& tensor, const Dims& perm) {
  if (perm.empty()) return tensor;
  Tensor result(tensor.dtype(), permuted(tensor.dims(), perm));
  if (result.size() == 0) return result;
  const Dims strides = permuted(dense_strides(tensor.dims()), perm);
  with_bits(dtype_size(tensor.dtype()), [&](auto zero) {
    const auto* from = static_cast<const decltype(zero)*>(tensor.data());
    auto* to = static_cast<decltype(zero)*>(result.mutable_data());
    for_parts(result.size() / result.dims().back(), result.byte_size(),
              [&](std::int64_t begin, std::int64_t end) {
                transpose_rows(from, to, result.dims(), strides, begin, end);
              });
  });
  return result;
}

AxisView view_axis(const Dims& dims, std::int64_t axis) {
  AxisView view;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto position = static_cast<std::int64_t>(i);
    (position < axis ? view.outer : (position == axis ? view.extent : view.inner)) *= dims[i];
  }
  return view;
}

void copy_strided(const StridedCopy& given, const void* source, void* target, std::size_t element_size) {
  for (std::int64_t extent : given.dims)
    if (extent == 0) return;
  const StridedCopy copy = merged(given);
  const std::size_t rank = copy.dims.size();
  const auto* from = static_cast<const std::byte*>(source);
  auto* to = static_cast<std::byte*>(target);
  const std::int64_t row = rank == 0 ? 1 : copy.dims.back();
  const std::int64_t row_stride = rank == 0 ? 1 : copy.strides.back();
  const std::int64_t target_row_stride = rank == 0 ? 1 : copy.target_strides.back();
  const auto size = static_cast<std::int64_t>(element_size);
  Dims index(rank, 0);
  std::int64_t offset = copy.offset;
  std::int64_t target_offset = copy.target_offset;
  for (;;) {
    copy_row_bytes(from + offset * size, row_stride, to + target_offset * size, target_row_stride, row,
                   element_size);
    std::size_t axis = rank == 0 ? 0 : rank - 1;
    for (; axis > 0; --axis) {
      const std::size_t d = axis - 1;
      offset += copy.strides[d];
      target_offset += copy.target_strides[d];
      if (++index[d] < copy.dims[d]) break;
      offset -= copy.dims[d] * copy.strides[d];
      target_offset -= copy.dims[d] * copy.target_strides[d];
      index[d] = 0;
    }
    if (axis == 0) return;
  }
}

Tensor expand(const Tensor& tensor, const Dims& dims) {
  if (tensor.dims() == dims) return tensor;
  Tensor result(tensor.dtype(), dims);
  const Dims own = dense_strides(tensor.dims());
  StridedCopy copy{dims, Dims(dims.size(), 0), 0, dense_strides(dims), 0};
  const std::size_t lead = dims.size() - own.size();
  for (std::size_t i = 0; i < own.size(); ++i)
    if (tensor.dims()[i] != 1) copy.strides[lead + i] = own[i];
  copy_strided(copy, tensor.data(), result.mutable_data(), dtype_size(tensor.dtype()));
  return result;
}

}  // namespace sylvite
