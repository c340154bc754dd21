#include "frontend/build/normalization.h"

#include <limits>

#include "base/error.h"

namespace sylvite {

std::vector<std::int64_t> axes_from(int axis, int rank) {
  std::vector<std::int64_t> axes;
  for (int i = axis; i < rank; ++i) axes.push_back(i);
  return axes;
}

Sym safe_softmax(Sym x, int axis) {
  const Sym is_empty =
      apply(Op::equal, reduce(Op::reduce_max, x, {axis}), -std::numeric_limits<double>::infinity());
  return where(is_empty, 0.0, softmax(x, axis));
}

Standardized standardize(Sym x, const std::vector<std::int64_t>& axes, double epsilon) {
  const Sym mean = reduce_mean(x, axes);
  const Sym centered = x - mean;
  const Sym inverse = apply(Op::rsqrt, reduce_mean(centered * centered, axes) + epsilon);
  return {centered * inverse, mean, inverse};
}

Sym standardized(Sym x, int axis, double epsilon) {
  // No axes, or no elements: nothing overflows.
  if (axis >= x.rank() || x.size() == 0) return standardize(x, axes_from(axis, x.rank()), epsilon).value;
  return x.builder().add(Op::layer_norm, {x}, {{"axis", std::int64_t{axis}}, {"epsilon", epsilon}});
}

Sym per_channel(Sym vector, int rank) {
  if (rank < 2) throw ModelError("the input has rank {}, expected batch and channels at least", rank);
  Dims dims(static_cast<std::size_t>(rank), 1);
  dims[1] = vector.size();
  return reshape(vector, dims);
}

Sym layer_norm(Sym x, Sym scale, Sym bias, int axis, double epsilon) {
  const Dims dims = x.dims();
  const Dims normalized(dims.begin() + axis, dims.end());
  if (scale.dims() == normalized && (!bias || bias.dims() == normalized)) {
    return x.builder().add(Op::layer_norm, {x, scale, bias},
                           {{"axis", std::int64_t{axis}}, {"epsilon", epsilon}});
  }
  const Sym scaled = standardized(x, axis, epsilon) * scale;
  return bias ? scaled + bias : scaled;
}

Sym rms_norm(Sym x, Sym scale, int axis, double epsilon) {
  const Dims dims = x.dims();
  if (scale.dims() == Dims(dims.begin() + axis, dims.end()))
    return x.builder().add(Op::rms_norm, {x, scale}, {{"axis", std::int64_t{axis}}, {"epsilon", epsilon}});
  const Sym mean = reduce_mean(x * x, axes_from(axis, x.rank()));
  return x * apply(Op::rsqrt, mean + epsilon) * scale;
}

Sym group_norm(Sym x, Sym scale, Sym bias, std::int64_t groups, double epsilon) {
  const Dims dims = x.dims();
  if (x.rank() < 2 || groups < 1 || dims[1] % groups != 0)
    throw ModelError("{} groups do not fit the input", groups);
  const Sym grouped = reshape(x, {dims[0], groups, dims[0] * groups == 0 ? 0 : x.size() / dims[0] / groups});
  const Sym value = standardized(grouped, 2, epsilon);
  const auto per_element = [&](Sym vector) {
    if (vector.size() == dims[1]) return per_channel(vector, x.rank());
    const Sym repeated = broadcast_to(reshape(vector, {groups, 1}), {groups, dims[1] / groups});
    return per_channel(reshape(repeated, {dims[1]}), x.rank());
  };
  return reshape(value, dims) * per_element(scale) + per_element(bias);
}

}  // namespace sylvite
