#pragma once
// Numbers that follow from symbols of the text, which passes leave as they are: at other sizes they are others.

#include <cstdint>
#include <string_view>
#include <vector>

#include "frontend/torch/torch_context.h"

namespace sylvite {

/// A scalar; `is_open`: a size, where it is whole.
[[nodiscard]] Sym size_scalar(GraphBuilder& builder, DType dtype, double number, bool is_open);

/// Elements of `x` along these axes.
[[nodiscard]] std::int64_t count_along(Sym x, const std::vector<std::int64_t>& axes);
/// The mean of `x`, which has the axes of the tensor `name`; x itself where there are no axes.
[[nodiscard]] Sym mean_along(TorchContext& c, std::string_view name, Sym x,
                             const std::vector<std::int64_t>& axes, bool keepdims = true);

}  // namespace sylvite
