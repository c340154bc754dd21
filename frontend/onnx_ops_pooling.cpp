// Poolings over windows and over whole maps.

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "frontend/onnx_ops.h"
#include "frontend/onnx_window.h"

namespace sylvite {
namespace {

OnnxWindow read_pool_window(ImportContext& c, Sym x) {
  return read_window(c, c.integers("kernel_shape"), spatial_dims(x));
}

/// Elements to add at the end of each axis so that ceil_mode's last window fits. A window that would start in
/// the end padding is dropped.
Dims ceil_extension(ImportContext& c, const OnnxWindow& window, const Dims& spatial) {
  Dims extension(window.rank(), 0);
  if (c.integer("ceil_mode", 0) == 0) return extension;
  for (std::size_t i = 0; i < window.rank(); ++i) {
    const std::int64_t padded = spatial[i] + window.pads[i] + window.pads[i + window.rank()];
    const std::int64_t reach = padded - window.extent(i);
    if (reach < 0) continue;
    std::int64_t last = (reach + window.strides[i] - 1) / window.strides[i];
    if (last * window.strides[i] >= spatial[i] + window.pads[i]) --last;
    extension[i] = std::max<std::int64_t>(last * window.strides[i] + window.extent(i) - padded, 0);
  }
  return extension;
}

OnnxWindow extended(OnnxWindow window, const Dims& extension) {
  for (std::size_t i = 0; i < window.rank(); ++i) window.pads[i + window.rank()] += extension[i];
  return window;
}

Attributes pool_attributes(const OnnxWindow& window) {
  return {{"kernel", window.kernel},
          {"strides", window.strides},
          {"pads", window.pads},
          {"dilations", window.dilations}};
}

Sym max_pool(Sym x, const OnnxWindow& window) {
  return x.builder().add(Op::max_pool, {x}, pool_attributes(window));
}

Sym average_pool(Sym x, const OnnxWindow& window, bool counts_padding) {
  Attributes attributes = pool_attributes(window);
  attributes.set("count_include_pad", std::int64_t{counts_padding});
  return x.builder().add(Op::avg_pool, {x}, attributes);
}

void max_pool_op(ImportContext& c) {
  const Sym x = c.input(0);
  if (c.wants_output(1)) throw UnsupportedError("the indices of the maxima are not computed");
  const OnnxWindow window = read_pool_window(c, x);
  c.output(max_pool(x, extended(window, ceil_extension(c, window, spatial_dims(x)))));
}

/// Padding counts as elements of the window, but what ceil_mode adds beyond it never does. Where both meet,
/// sums over windows are divided by counts of elements that are inside the padded map.
void average_pool_op(ImportContext& c) {
  const Sym x = c.input(0);
  const Dims spatial = spatial_dims(x);
  const OnnxWindow window = read_pool_window(c, x);
  const Dims extension = ceil_extension(c, window, spatial);
  const bool counts_padding = c.integer("count_include_pad", 0) != 0;
  const bool is_extended = std::any_of(extension.begin(), extension.end(), [](auto e) { return e > 0; });
  if (!counts_padding || !is_extended)
    return c.output(average_pool(x, extended(window, extension), counts_padding));
  Dims low(2, 0);
  Dims high(2, 0);
  for (std::size_t i = 0; i < window.rank(); ++i) {
    low.push_back(window.pads[i]);
    high.push_back(window.pads[i + window.rank()]);
  }
  OnnxWindow rest = window;
  rest.pads.assign(2 * window.rank(), 0);
  c.output(average_pool(pad(x, low, high), extended(rest, extension), false));
}

template <Op op>
void global_pool(ImportContext& c) {
  const Sym x = c.input(0);
  std::vector<std::int64_t> axes = all_axes(x.rank());
  axes.erase(axes.begin(), axes.begin() + std::min(2, x.rank()));
  c.output(op == Op::reduce_sum ? reduce_mean(x, axes) : reduce(op, x, axes));
}

/// |x|^p summed, to the power 1/p.
Sym root_of_sum(Sym sum, double p) {
  if (p == 1) return sum;
  return p == 2 ? apply(Op::sqrt, sum) : apply(Op::pow, sum, 1 / p);
}

Sym absolute_power(Sym x, double p) {
  if (p == 2) return x * x;
  const Sym size = apply(Op::abs, x);
  return p == 1 ? size : apply(Op::pow, size, p);
}

void lp_pool(ImportContext& c) {
  const Sym x = c.input(0);
  const auto p = static_cast<double>(c.integer("p", 2));
  OnnxWindow window = read_pool_window(c, x);
  window = extended(window, ceil_extension(c, window, spatial_dims(x)));
  const auto count = static_cast<double>(checked_product(window.kernel, "kernel_shape"));
  c.output(root_of_sum(average_pool(absolute_power(x, p), window, true) * count, p));
}

void global_lp_pool(ImportContext& c) {
  const Sym x = c.input(0);
  const auto p = static_cast<double>(c.integer("p", 2));
  std::vector<std::int64_t> axes = all_axes(x.rank());
  axes.erase(axes.begin(), axes.begin() + std::min(2, x.rank()));
  c.output(root_of_sum(reduce(Op::reduce_sum, absolute_power(x, p), axes), p));
}

const OnnxOp rows[] = {
    {"AveragePool", 1, average_pool_op},
    {"GlobalAveragePool", 1, global_pool<Op::reduce_sum>},
    {"GlobalLpPool", 2, global_lp_pool},
    {"GlobalMaxPool", 1, global_pool<Op::reduce_max>},
    {"LpPool", 2, lp_pool},
    {"MaxPool", 1, max_pool_op},
};

}  // namespace

std::span<const OnnxOp> onnx_pooling_ops() {
  return rows;
}

}  // namespace sylvite
