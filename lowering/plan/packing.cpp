#include "lowering/plan/packing.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/parts.h"
#include "base/rounding.h"
#include "frontend/values/storage.h"
#include "lowering/plan/grouped_filter.h"
#include "lowering/plan/storage_order.h"
#include "lowering/plan/winograd.h"

namespace sylvite {
namespace {

/// One axis of the packed tensor: which logical dim it walks, and by how much.
struct PackedAxis {
  std::size_t dim = 0;
  std::int64_t extent = 0;
  std::int64_t coordinate_step = 0;  ///< logical coordinate of `dim` per step
  std::int64_t source_step = 0;      ///< source elements per step
};

constexpr std::int64_t pair = 2;

void check_fits(const Packing& packing, const Dims& dims) {
  if (packing.factors.size() != dims.size()) {
    throw InternalError("packing has {} factors for a tensor of rank {}", packing.factors.size(),
                        dims.size());
  }
  for (std::int64_t factor : packing.factors)
    if (factor < 1) throw InternalError("packing factor {} is not positive", factor);
  std::vector<int> seen(2 * dims.size(), 0);
  for (int axis : packing.order) {
    const bool known = axis >= 0 && static_cast<std::size_t>(axis) < seen.size();
    if (!known) throw InternalError("packing order names axis {}", axis);
    const bool again = seen[static_cast<std::size_t>(axis)]++ > 0;
    const bool has_pairs = axis % 2 == 1 && packing.factors[static_cast<std::size_t>(axis / 2)] % pair == 0;
    if (again && (!has_pairs || seen[static_cast<std::size_t>(axis)] > 2))
      throw InternalError("packing order names axis {} again", axis);
  }
  // The inner part of a factor of 1, as of images with one channel, may be named or not.
  for (std::size_t axis = 0; axis < seen.size(); ++axis)
    if (seen[axis] == 0 && (axis % 2 == 0 || packing.factors[axis / 2] > 1))
      throw InternalError("packing order leaves out axis {}", axis);
}

std::vector<PackedAxis> packed_axes(const Packing& packing, const Dims& dims) {
  check_fits(packing, dims);
  const Dims strides = dense_strides(dims);
  std::vector<PackedAxis> axes;
  for (auto at = packing.order.begin(); at != packing.order.end(); ++at) {
    const auto dim = static_cast<std::size_t>(*at / 2);
    const std::int64_t factor = packing.factors[dim];
    const bool inner = *at % 2 == 1;
    const bool is_pairs = std::find(at + 1, packing.order.end(), *at) != packing.order.end();
    const bool is_within = std::find(packing.order.begin(), at, *at) != at;
    const std::int64_t step = is_pairs ? pair : inner ? 1 : factor;
    const std::int64_t extent = is_pairs    ? factor / pair
                                : is_within ? pair
                                : inner     ? factor
                                            : ceil_div(dims[dim], factor);
    axes.push_back({dim, extent, step, step * strides[dim]});
  }
  return axes;
}

/// Copies the packed elements whose first axis is in [begin, end); padding keeps the zeros it was made with.
template <typename Element>
void pack_range(const Element* source, Element* target, const std::vector<PackedAxis>& axes, const Dims& dims,
                std::int64_t begin, std::int64_t end) {
  const PackedAxis& last = axes.back();
  std::int64_t rows = end - begin;
  for (std::size_t i = 1; i + 1 < axes.size(); ++i) rows *= axes[i].extent;
  target += begin * (rows / std::max<std::int64_t>(end - begin, 1)) * last.extent;
  std::vector<std::int64_t> index(axes.size(), 0);
  std::vector<std::int64_t> coordinate(dims.size(), 0);
  index[0] = begin;
  coordinate[axes[0].dim] = begin * axes[0].coordinate_step;
  std::int64_t offset = begin * axes[0].source_step;
  for (std::int64_t row = 0; row < rows; ++row, target += last.extent) {
    bool inside = true;
    for (std::size_t d = 0; d < dims.size(); ++d) inside = inside && coordinate[d] < dims[d];
    if (inside) {
      const std::int64_t left = dims[last.dim] - coordinate[last.dim];
      const std::int64_t count = std::min(last.extent, ceil_div(left, last.coordinate_step));
      const Element* from = source + offset;
      if (last.source_step == 1)
        std::memcpy(target, from, static_cast<std::size_t>(count) * sizeof(Element));
      else
        for (std::int64_t i = 0; i < count; ++i) target[i] = from[i * last.source_step];
    }
    for (std::size_t a = axes.size() - 1; a-- > 0;) {
      coordinate[axes[a].dim] += axes[a].coordinate_step;
      offset += axes[a].source_step;
      if (++index[a] < axes[a].extent || a == 0) break;
      coordinate[axes[a].dim] -= axes[a].extent * axes[a].coordinate_step;
      offset -= axes[a].extent * axes[a].source_step;
      index[a] = 0;
    }
  }
}

template <typename Element>
void pack_elements(const Tensor& source, Tensor& target, std::vector<PackedAxis> axes) {
  if (axes.size() == 1) axes.insert(axes.begin(), {axes[0].dim, 1, 0, 0});
  const auto* from = static_cast<const Element*>(source.data());
  auto* to = static_cast<Element*>(target.mutable_data());
  for_parts(axes[0].extent, target.byte_size(), [&](std::int64_t begin, std::int64_t end) {
    pack_range(from, to, axes, source.dims(), begin, end);
  });
}

Dims logical_dims(const Packing& packing, const Dims& dims) {
  if (packing.winograd_tile > 0) return transformed_filter_dims(dims, packing.winograd_tile);
  if (packing.filter_groups > 1)
    return spread_filter_dims(dims, packing.filter_groups, packing.factors.at(0));
  return dims;
}

Tensor logical_tensor(const Packing& packing, const Tensor& weight) {
  if (packing.winograd_tile > 0) return transform_filter(weight, packing.winograd_tile);
  if (packing.filter_groups > 1) return spread_filter(weight, packing.filter_groups, packing.factors.at(0));
  return weight;
}

}  // namespace

Dims Packing::packed_dims(const Dims& dims) const {
  if (is_identity()) return dims;
  Dims result;
  for (const PackedAxis& axis : packed_axes(*this, logical_dims(*this, dims))) result.push_back(axis.extent);
  return result;
}

Packing layout_packing(const TensorType& type) {
  Packing packing;
  if (type.layout.channel_block == 0) return packing;
  packing.factors.assign(type.shape.size(), 1);
  packing.factors.at(1) = type.layout.channel_block;
  for (int dim = 0; dim < type.rank(); ++dim) packing.order.push_back(2 * dim);
  packing.order.push_back(3);
  if (has_outer_blocks(type)) std::swap(packing.order[0], packing.order[1]);
  return packing;
}

bool is_layout(const Packing& packing, const TensorType& type) {
  return packing.is_identity() || packing == layout_packing(type);
}

Tensor pack(const Tensor& weight, const Packing& packing) {
  if (packing.is_identity()) return weight;
  Tensor result(weight.dtype(), packing.packed_dims(weight.dims()));
  pack_into(weight, packing, result);
  return result;
}

void pack_into(const Tensor& weight, const Packing& packing, Tensor& result) {
  const Tensor tensor = logical_tensor(packing, weight);
  const std::vector<PackedAxis> axes = packed_axes(packing, tensor.dims());
  if (tensor.size() == 0 || result.size() == 0) return;
  with_bits(dtype_size(tensor.dtype()),
            [&](auto zero) { pack_elements<decltype(zero)>(tensor, result, axes); });
}

}  // namespace sylvite
