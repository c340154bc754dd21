// Reference semantics of pooling.

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/ops/evaluate.h"
#include "frontend/values/storage.h"

namespace sylvite {
namespace {

/// One spatial dim of a window: the input positions it covers at each output position.
struct WindowAxis {
  std::int64_t input, output, kernel, stride, dilation, low, high;
};

/// The spatial dims, padded in front to three.
std::vector<WindowAxis> window_axes(const Dims& input, const Dims& output, const Attributes& attributes) {
  const auto& kernel = attributes.integers("kernel");
  const auto& pads = attributes.integers("pads");
  const std::size_t rank = kernel.size();
  std::vector<WindowAxis> axes(3 - rank, WindowAxis{1, 1, 1, 1, 1, 0, 0});
  for (std::size_t i = 0; i < rank; ++i) {
    axes.push_back({input[2 + i], output[2 + i], kernel[i], attributes.integers("strides")[i],
                    attributes.integers("dilations")[i], pads[i], pads[rank + i]});
  }
  return axes;
}

/// The input positions of one window along one axis, and how many of its taps lie within the padded extent.
struct Taps {
  std::vector<std::int64_t> positions;
  double padded_count = 0;
};

/// How many of the axis' taps lie before `end`, the first of them at `start`.
std::int64_t taps_before(const WindowAxis& axis, std::int64_t start, std::int64_t end) {
  return start >= end ? 0 : std::min((end - start - 1) / axis.dilation + 1, axis.kernel);
}

Taps taps_at(const WindowAxis& axis, std::int64_t output) {
  const std::int64_t start = output * axis.stride - axis.low;
  Taps taps;
  for (std::int64_t k = taps_before(axis, start, 0); k < taps_before(axis, start, axis.input); ++k)
    taps.positions.push_back(start + k * axis.dilation);
  taps.padded_count = static_cast<double>(taps_before(axis, start, axis.input + axis.high));
  return taps;
}

std::vector<Taps> all_taps(const WindowAxis& axis) {
  std::vector<Taps> taps;
  taps.reserve(static_cast<std::size_t>(axis.output));
  for (std::int64_t i = 0; i < axis.output; ++i) taps.push_back(taps_at(axis, i));
  return taps;
}

/// Calls visit(sum over nothing yet) for each value in the window.
template <typename C, typename Visit>
void for_window(const C* plane, const std::vector<WindowAxis>& axes, const Taps& z, const Taps& y,
                const Taps& x, Visit visit) {
  for (std::int64_t i : z.positions) {
    for (std::int64_t j : y.positions)
      for (std::int64_t k : x.positions) visit(plane[(i * axes[1].input + j) * axes[2].input + k]);
  }
}

/// Pools with `start` as the value of an empty window; finish(acc, inside, padded) makes the result.
template <typename C, typename Combine, typename Finish>
Tensor pool(const Tensor& input, const TensorType& type, const Attributes& attributes, C start,
            Combine combine, Finish finish) {
  const std::vector<C> values = decode<C>(input);
  const Dims dims = type.dims();
  const std::vector<WindowAxis> axes = window_axes(input.dims(), dims, attributes);
  const std::vector<Taps> z_taps = all_taps(axes[0]);
  const std::vector<Taps> y_taps = all_taps(axes[1]);
  const std::vector<Taps> x_taps = all_taps(axes[2]);
  std::vector<C> out;
  out.reserve(static_cast<std::size_t>(type.element_count()));
  const std::int64_t plane = axes[0].input * axes[1].input * axes[2].input;
  for (std::int64_t channel = 0; channel < dims[0] * dims[1]; ++channel) {
    const C* source = values.data() + channel * plane;
    for (const Taps& z : z_taps) {
      for (const Taps& y : y_taps) {
        for (const Taps& x : x_taps) {
          C acc = start;
          for_window(source, axes, z, y, x, [&](C value) { acc = combine(acc, value); });
          const std::size_t inside = z.positions.size() * y.positions.size() * x.positions.size();
          out.push_back(finish(acc, inside, z.padded_count * y.padded_count * x.padded_count));
        }
      }
    }
  }
  return encode(type.dtype, dims, out);
}

/// The smallest value of the dtype, which any other replaces.
template <typename C>
C lowest(DType dtype) {
  if constexpr (std::is_same_v<C, double>) {
    return -std::numeric_limits<double>::infinity();
  } else {
    return with_storage(dtype, [](auto zero) {
      if constexpr (std::is_integral_v<decltype(zero)>)
        return static_cast<C>(std::numeric_limits<decltype(zero)>::min());
      else
        return C{0};
    });
  }
}

}  // namespace

OutputTensors evaluate_pool(Op op, InputTensors inputs, const Attributes& attributes, ResultTypes types) {
  const Tensor& input = *inputs[0];
  if (op == Op::avg_pool) {
    const bool count_padding = attributes.integer("count_include_pad") != 0;
    return {pool<double>(
        input, types[0], attributes, 0.0, [](double a, double b) { return a + b; },
        [=](double sum, std::size_t inside, double padded) {
          const double count = count_padding ? padded : static_cast<double>(inside);
          return count == 0 ? 0 : sum / count;
        })};
  }
  return {with_arithmetic(input.dtype(), [&](auto zero) {
    using C = decltype(zero);
    return pool<C>(
        input, types[0], attributes, lowest<C>(input.dtype()),
        [](C a, C b) { return a != a || a > b ? a : b; }, [](C acc, std::size_t, double) { return acc; });
  })};
}

OutputTensors evaluate_max_pool_gradient(Op, InputTensors inputs, const Attributes& attributes,
                                         ResultTypes types) {
  const Dims pooled = inputs[0]->dims(), dims = types[0].dims();
  const std::vector<double> gradient = decode<double>(*inputs[0]), values = decode<double>(*inputs[1]);
  const std::vector<WindowAxis> axes = window_axes(dims, pooled, attributes);
  const std::vector<Taps> lines = all_taps(axes[1]), columns = all_taps(axes[2]);
  std::vector<double> sums(values.size());
  std::size_t at = 0;
  for (std::int64_t channel = 0; channel < dims[0] * dims[1]; ++channel) {
    const std::int64_t plane = channel * dims[2] * dims[3];
    for (const Taps& y : lines) {
      for (const Taps& x : columns) {
        std::int64_t place = -1;
        for (const std::int64_t line : y.positions) {
          for (const std::int64_t column : x.positions) {
            const std::int64_t here = plane + line * dims[3] + column;
            const double value = values[static_cast<std::size_t>(here)];
            const double best = place < 0 ? value : values[static_cast<std::size_t>(place)];
            if (place < 0 || value > best || (std::isnan(value) && !std::isnan(best))) place = here;
          }
        }
        if (place >= 0) sums[static_cast<std::size_t>(place)] += gradient[at];
        ++at;
      }
    }
  }
  return {encode(types[0].dtype, dims, sums)};
}

}  // namespace sylvite
