#pragma once
// What growths ask of values.

#include <algorithm>
#include <cmath>

#include "sylvite/tensor.h"
#include "tests/fuzz/model_grower.h"

namespace sylvite::fuzz {

inline bool is_anything(const Tensor& /*tensor*/) {
  return true;
}
inline bool is_real(const Tensor& tensor) {
  return is_float(tensor.dtype());
}
inline bool is_single(const Tensor& tensor) {
  return tensor.dtype() == DType::f32;
}
inline bool is_integer(const Tensor& tensor) {
  return is_signed_integer(tensor.dtype()) || is_unsigned_integer(tensor.dtype());
}
inline bool is_number(const Tensor& tensor) {
  return is_real(tensor) || is_integer(tensor);
}
inline bool is_boolean(const Tensor& tensor) {
  return tensor.dtype() == DType::boolean;
}
inline int rank_of(const Tensor& tensor) {
  return static_cast<int>(tensor.dims().size());
}
inline bool has_axes(const Tensor& tensor) {
  return rank_of(tensor) > 0;
}
inline bool is_image(const Tensor& tensor) {
  return is_real(tensor) && rank_of(tensor) >= 3 && rank_of(tensor) <= 5 && tensor.size() > 0;
}

/// Whether every element lies in [low, high].
inline bool lies_within(const Tensor& tensor, double low, double high) {
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const double value = tensor.as_double(i);
    if (!(value >= low && value <= high)) return false;
  }
  return true;
}

/// An axis of the tensor, sometimes counted from the end.
inline std::int64_t axis_of(ModelGrower& grower, const Tensor& tensor) {
  const auto rank = static_cast<std::int64_t>(rank_of(tensor));
  return grower.chance(0.3) ? grower.between(-rank, -1) : grower.between(0, rank - 1);
}
inline std::int64_t extent_at(const Tensor& tensor, std::int64_t axis) {
  return tensor.dims().at(static_cast<std::size_t>(axis < 0 ? axis + rank_of(tensor) : axis));
}
/// A non-empty sorted set of axes.
inline std::vector<std::int64_t> some_axes(ModelGrower& grower, const Tensor& tensor) {
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = 0; axis < rank_of(tensor); ++axis)
    if (grower.chance(0.4)) axes.push_back(axis);
  if (axes.empty()) axes.push_back(grower.between(0, rank_of(tensor) - 1));
  return axes;
}
inline Tensor scalar_like(const Tensor& tensor, double value) {
  Tensor scalar(tensor.dtype(), {});
  scalar.set_double(0, value);
  return scalar;
}
/// Integers of [low, high].
inline Tensor random_integers(ModelGrower& grower, DType dtype, const Dims& dims, std::int64_t low,
                              std::int64_t high) {
  Tensor tensor(dtype, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_int64(i, grower.between(low, high));
  return tensor;
}

}  // namespace sylvite::fuzz
