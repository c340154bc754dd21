#include "frontend/build/pooling.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "frontend/build/normalization.h"

namespace sylvite {
namespace {

Attributes pool_attributes(const MapWindow& window) {
  return {{"kernel", window.kernel},
          {"strides", window.strides},
          {"pads", window.pads},
          {"dilations", window.dilations}};
}

Sym pool_average(Sym x, const MapWindow& window, bool counts_padding) {
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

WindowTable tabulate(GraphBuilder& builder, const MapWindow& window, const Dims& spatial,
                     bool is_column_major) {
  WindowTable table;
  for (std::size_t i = 0; i < window.rank(); ++i) {
    table.padded.push_back(spatial[i] + window.pads[i] + window.pads[i + window.rank()]);
    table.outputs.push_back((table.padded[i] - window.extent(i)) / window.strides[i] + 1);
  }
  const std::int64_t windows = checked_product(table.outputs, "windows");
  const std::int64_t taps = checked_product(window.kernel, "window");
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

}  // namespace

Dims ceil_extension(const MapWindow& window, const Dims& spatial) {
  Dims extension(window.rank(), 0);
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

MapWindow extended(MapWindow window, const Dims& extension) {
  for (std::size_t i = 0; i < window.rank(); ++i) window.pads[i + window.rank()] += extension[i];
  return window;
}

Sym max_pool(Sym x, const MapWindow& window) {
  return x.builder().add(Op::max_pool, {x}, pool_attributes(window));
}

Sym max_positions(Sym x, const MapWindow& window, bool is_column_major) {
  GraphBuilder& b = x.builder();
  const Dims spatial = spatial_dims(x);
  const WindowTable table = tabulate(b, window, spatial, is_column_major);
  const std::int64_t windows = checked_product(table.outputs, "windows");
  const std::int64_t taps = checked_product(window.kernel, "window");
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
    return b.constant(Tensor::of(DType::i64, {windows, taps}, values));
  };
  const Sym best =
      b.add(Op::arg_max, {gather(flat, rows_of(table.positions), 2)}, {{"axis", std::int64_t{3}}});
  const Sym indices = broadcast_to(rows_of(table.indices), {x.dim(0), x.dim(1), windows, taps});
  const Sym inside = b.add(Op::gather_elements, {indices, best}, {{"axis", std::int64_t{3}}});
  Dims dims{x.dim(0), x.dim(1)};
  dims.insert(dims.end(), table.outputs.begin(), table.outputs.end());
  return reshape(inside, dims);
}

Sym average_pool(Sym x, const MapWindow& window, const Dims& extension, bool counts_padding) {
  const bool is_extended = std::any_of(extension.begin(), extension.end(), [](auto e) { return e > 0; });
  if (!counts_padding || !is_extended) return pool_average(x, extended(window, extension), counts_padding);
  // Where padding counts, what is added beyond it does not: sums over windows are divided by counts of elements that are
  // inside the padded map.
  Dims low(2, 0);
  Dims high(2, 0);
  for (std::size_t i = 0; i < window.rank(); ++i) {
    low.push_back(window.pads[i]);
    high.push_back(window.pads[i + window.rank()]);
  }
  MapWindow rest = window;
  rest.pads.assign(2 * window.rank(), 0);
  return pool_average(pad(x, low, high), extended(rest, extension), false);
}

std::vector<std::int64_t> map_axes(Sym x) {
  return axes_from(std::min(2, x.rank()), x.rank());
}

Sym global_average(Sym x) {
  return reduce_mean(x, map_axes(x));
}

}  // namespace sylvite
