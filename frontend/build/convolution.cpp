#include "frontend/build/convolution.h"

#include <algorithm>

#include "base/error.h"

namespace sylvite {

Sym transposed_weights(Sym w, std::int64_t groups) {
  const Dims dims = w.dims();
  Dims split{groups, dims[0] / groups, dims[1]};
  Dims joined{groups * dims[1], dims[0] / groups};
  std::vector<std::int64_t> perm{0, 2, 1};
  for (std::size_t i = 2; i < dims.size(); ++i) {
    split.push_back(dims[i]);
    joined.push_back(dims[i]);
    perm.push_back(static_cast<std::int64_t>(i) + 1);
    w = flip(w, static_cast<int>(i));
  }
  return reshape(transpose(reshape(w, split), perm), joined);
}

Sym transposed_conv(Sym x, Sym w, Sym bias, const TransposedWindow& window, std::int64_t groups) {
  const Dims kernel = spatial_dims(w);
  if (kernel.size() != spatial_dims(x).size())
    throw ModelError("the weights have {} spatial axes, the input {}", kernel.size(), spatial_dims(x).size());
  if (groups < 1 || w.dim(0) % groups != 0)
    throw ModelError("{} groups do not divide {} channels", groups, w.dim(0));
  Dims low(2, 0);
  Dims high(2, 0);
  Dims interior(2, 0);
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const std::int64_t reach = (kernel[i] - 1) * window.dilations[i];
    low.push_back(reach - window.begin[i]);
    high.push_back(reach - window.end[i] + window.output_padding[i]);
    interior.push_back(window.strides[i] - 1);
  }
  const auto positive = [](Dims dims) {
    for (std::int64_t& d : dims) d = std::max<std::int64_t>(d, 0);
    return dims;
  };
  x = pad(x, positive(low), positive(high), 0, interior);
  for (int axis = 2; axis < x.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    x = slice(x, axis, std::max<std::int64_t>(-low[i], 0), x.dim(axis) - std::max<std::int64_t>(-high[i], 0));
  }
  std::vector<Sym> inputs{x, transposed_weights(w, groups)};
  if (bias) inputs.push_back(bias);
  return conv(inputs, {{"strides", Dims(kernel.size(), 1)},
                       {"pads", Dims(2 * kernel.size(), 0)},
                       {"dilations", window.dilations},
                       {"groups", groups}});
}

}  // namespace sylvite
