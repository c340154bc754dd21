#include "frontend/torch/open_sizes.h"

#include <cmath>

#include "frontend/values/size_table.h"

namespace sylvite {

Sym size_scalar(GraphBuilder& builder, DType dtype, double number, bool is_open) {
  if (!is_open || number != std::floor(number)) return builder.scalar(dtype, number);
  return cast(builder.constant(open_size(static_cast<std::int64_t>(number))), dtype);
}

std::int64_t count_along(Sym x, const std::vector<std::int64_t>& axes) {
  std::int64_t count = 1;
  for (const std::int64_t axis : axes) count *= x.dim(static_cast<int>(axis));
  return count;
}

Sym mean_along(TorchContext& c, std::string_view name, Sym x, const std::vector<std::int64_t>& axes,
               bool keepdims) {
  if (axes.empty()) return x;
  if (!is_float(x.dtype()) || !c.has_open_axis(name, axes)) return reduce_mean(x, axes, keepdims);
  const auto count = static_cast<double>(count_along(x, axes));
  const Sym size = size_scalar(c.builder(), x.dtype(), count, true);
  return reduce(Op::reduce_sum, x, axes, keepdims) * apply(Op::reciprocal, size);
}

}  // namespace sylvite
