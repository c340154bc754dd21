// Poolings over windows and over whole maps.

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "frontend/onnx/channel_order.h"
#include "frontend/onnx/normalization.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/pooling.h"
#include "frontend/onnx/window.h"

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

Sym pool_average(Sym x, const OnnxWindow& window, bool counts_padding) {
  Attributes attributes = pool_attributes(window);
  attributes.set("count_include_pad", std::int64_t{counts_padding});
  return x.builder().add(Op::avg_pool, {x}, attributes);
}

/// For every window and tap, the flat position in the padded map, and the index ONNX gives it in the map
/// itself.
struct WindowTable {
  Dims outputs, padded;
  std::vector<std::int64_t> positions, indices;  ///< [windows, taps]
};

WindowTable tabulate(GraphBuilder& builder, const OnnxWindow& window, const Dims& spatial,
                     bool is_column_major) {
  WindowTable table;
  for (std::size_t i = 0; i < window.rank(); ++i) {
    table.padded.push_back(spatial[i] + window.pads[i] + window.pads[i + window.rank()]);
    table.outputs.push_back((table.padded[i] - window.extent(i)) / window.strides[i] + 1);
  }
  const std::int64_t windows = checked_product(table.outputs, "windows");
  const std::int64_t taps = checked_product(window.kernel, "kernel_shape");
  builder.reserve_table({2, windows, taps});
  (void)checked_product(table.padded, "padded map");  // positions in it can be counted
  const Dims out_strides = dense_strides(table.outputs);
  const Dims tap_strides = dense_strides(window.kernel);
  const Dims padded_strides = dense_strides(table.padded);
  Dims index_strides = dense_strides(spatial);
  if (is_column_major) {
    std::int64_t stride = 1;
    for (std::size_t i = 0; i < spatial.size(); ++i) {
      index_strides[i] = stride;
      stride *= spatial[i];
    }
  }
  for (std::int64_t w = 0; w < windows; ++w) {
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      std::int64_t position = 0;
      std::int64_t index = 0;
      for (std::size_t i = 0; i < spatial.size(); ++i) {
        const std::int64_t start = w / out_strides[i] % table.outputs[i] * window.strides[i];
        const std::int64_t at = start + tap / tap_strides[i] % window.kernel[i] * window.dilations[i];
        position += at * padded_strides[i];
        index += (at - window.pads[i]) * index_strides[i];
      }
      table.positions.push_back(position);
      table.indices.push_back(index);
    }
  }
  return table;
}

/// The index of each window's first maximum: all windows are laid out as rows, and searched.
Sym max_indices(ImportContext& c, Sym x, const OnnxWindow& window) {
  const Dims spatial = spatial_dims(x);
  const WindowTable table = tabulate(c.builder(), window, spatial, c.integer("storage_order", 0) != 0);
  const std::int64_t windows = checked_product(table.outputs, "windows");
  const std::int64_t taps = checked_product(window.kernel, "kernel_shape");
  Dims low(2, 0);
  Dims high(2, 0);
  for (std::size_t i = 0; i < window.rank(); ++i) {
    low.push_back(window.pads[i]);
    high.push_back(window.pads[i + window.rank()]);
  }
  const double lowest = is_float(x.dtype()) ? -std::numeric_limits<double>::infinity() : -1e9;
  const Sym real = is_float(x.dtype()) ? x : cast(x, DType::i32);
  const Sym flat =
      reshape(pad(real, low, high, lowest), {x.dim(0), x.dim(1), checked_product(table.padded, "map")});
  const auto rows_of = [&](const std::vector<std::int64_t>& values) {
    return c.builder().constant(Tensor::of(DType::i64, {windows, taps}, values));
  };
  const Sym best =
      c.builder().add(Op::arg_max, {gather(flat, rows_of(table.positions), 2)}, {{"axis", std::int64_t{3}}});
  const Sym indices = broadcast_to(rows_of(table.indices), {x.dim(0), x.dim(1), windows, taps});
  const Sym inside = c.builder().add(Op::gather_elements, {indices, best}, {{"axis", std::int64_t{3}}});
  const auto maps = static_cast<double>(checked_product(spatial, "map"));
  const Sym map = c.builder().iota(DType::i64, {x.dim(0) * x.dim(1), 1}, 0) * maps;
  Dims dims{x.dim(0), x.dim(1)};
  dims.insert(dims.end(), table.outputs.begin(), table.outputs.end());
  return reshape(reshape(inside, {x.dim(0) * x.dim(1), windows}) + map, dims);
}

void max_pool_op(ImportContext& c) {
  const Sym x = c.input(0);
  OnnxWindow window = read_pool_window(c, x);
  window = extended(window, ceil_extension(c, window, spatial_dims(x)));
  c.output(0, max_pool(x, window));
  if (c.wants_output(1)) c.output(1, max_indices(c, x, window));
}

/// For the domain com.microsoft.
void max_pool_channels_last(ImportContext& c) {
  const Sym x = channels_first(c.input(0));
  const OnnxWindow window = read_pool_window(c, x);
  c.output(channels_last(max_pool(x, extended(window, ceil_extension(c, window, spatial_dims(x))))));
}

/// Puts the maxima back where their indices say, zeros elsewhere.
void max_unpool(ImportContext& c) {
  const Sym x = c.input(0);
  const Sym indices = c.input(1);
  const OnnxWindow window = read_pool_window(c, x);
  Dims natural{x.dim(0), x.dim(1)};
  for (std::size_t i = 0; i < window.rank(); ++i) {
    const std::int64_t spread = (spatial_dims(x)[i] - 1) * window.strides[i] + window.kernel[i];
    natural.push_back(spread - window.pads[i] - window.pads[i + window.rank()]);
  }
  const std::int64_t count = checked_product(natural, "unpooled map");
  const Sym zeros = c.builder().filled(x.dtype(), {count}, 0);
  const Sym y = reshape(
      c.builder().add(Op::scatter_elements, {zeros, reshape(indices, {x.size()}), reshape(x, {x.size()})},
                      {{"axis", std::int64_t{0}}}),
      natural);
  if (!c.has_input(2)) return c.output(y);
  const Dims wanted = c.constant_integers(2);
  if (wanted.size() != natural.size())
    throw ModelError("output_shape has rank {}, expected {}", wanted.size(), natural.size());
  Dims high;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] < natural[i]) throw ModelError("output_shape is smaller than the unpooled map");
    high.push_back(wanted[i] - natural[i]);
  }
  c.output(pad(y, Dims(wanted.size(), 0), high));
}

void average_pool_op(ImportContext& c) {
  c.output(average_pool(c, c.input(0)));
}

std::vector<std::int64_t> map_axes(Sym x) {
  return axes_from(std::min(2, x.rank()), x.rank());
}

void global_average_pool(ImportContext& c) {
  c.output(global_average(c.input(0)));
}

void global_max_pool(ImportContext& c) {
  c.output(reduce(Op::reduce_max, c.input(0), map_axes(c.input(0))));
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
  c.output(root_of_sum(pool_average(absolute_power(x, p), window, true) * count, p));
}

void global_lp_pool(ImportContext& c) {
  const Sym x = c.input(0);
  const auto p = static_cast<double>(c.integer("p", 2));
  c.output(root_of_sum(reduce(Op::reduce_sum, absolute_power(x, p), map_axes(x)), p));
}

const OnnxOp rows[] = {
    {"AveragePool", 1, average_pool_op},
    {"GlobalAveragePool", 1, global_average_pool},
    {"GlobalLpPool", 2, global_lp_pool},
    {"GlobalMaxPool", 1, global_max_pool},
    {"LpPool", 2, lp_pool},
    {"MaxPool", 1, max_pool_op},
    {"MaxUnpool", 9, max_unpool},
    {"NhwcMaxPool", 1, max_pool_channels_last, "com.microsoft"},
};

}  // namespace

Sym global_average(Sym x) {
  return reduce_mean(x, map_axes(x));
}

Sym average_pool(ImportContext& c, Sym x) {
  const Dims spatial = spatial_dims(x);
  const OnnxWindow window = read_pool_window(c, x);
  const Dims extension = ceil_extension(c, window, spatial);
  const bool counts_padding = c.integer("count_include_pad", 0) != 0;
  const bool is_extended = std::any_of(extension.begin(), extension.end(), [](auto e) { return e > 0; });
  if (!counts_padding || !is_extended) return pool_average(x, extended(window, extension), counts_padding);
  // Where padding counts, what ceil_mode adds beyond it does not: sums over windows are divided by counts of
  // elements that are inside the padded map.
  Dims low(2, 0);
  Dims high(2, 0);
  for (std::size_t i = 0; i < window.rank(); ++i) {
    low.push_back(window.pads[i]);
    high.push_back(window.pads[i + window.rank()]);
  }
  OnnxWindow rest = window;
  rest.pads.assign(2 * window.rank(), 0);
  return pool_average(pad(x, low, high), extended(rest, extension), false);
}

std::span<const OnnxOp> onnx_pooling_ops() {
  return rows;
}

}  // namespace sylvite
