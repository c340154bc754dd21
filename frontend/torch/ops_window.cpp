// Convolutions and poolings, and their gradients.

#include <algorithm>
#include <cmath>

#include "frontend/build/convolution.h"
#include "frontend/build/pooling.h"
#include "frontend/torch/torch_ops.h"

namespace sylvite {
namespace {

/// One number stands for all axes.
Dims per_axis(TorchContext& c, std::string_view name, std::size_t rank, std::int64_t fallback,
              std::int64_t least) {
  Dims values = c.integers(name, Dims(rank, fallback));
  if (values.empty()) values.assign(rank, fallback);
  if (values.size() == 1) values.assign(rank, values[0]);
  if (values.size() != rank) throw ModelError("'{}' has {} values, expected {}", name, values.size(), rank);
  check_extents(std::string(name), values, least);
  return values;
}

Dims twice(const Dims& padding) {
  Dims pads = padding;
  pads.insert(pads.end(), padding.begin(), padding.end());
  return pads;
}

/// Without a batch an axis for it is put in front.
Sym batched(Sym x, std::size_t spatial) {
  const int rank = static_cast<int>(spatial) + 2;
  return x.rank() == rank - 1 ? unsqueeze(x, {0}) : x;
}

struct ConvArguments {
  Dims strides, padding, dilations, output_padding;
  std::int64_t groups;
  bool is_transposed;
  bool innermost;  ///< channels of images will lie innermost in memory

  [[nodiscard]] TransposedWindow transposed() const {
    return {strides, dilations, output_padding, padding, padding, innermost};
  }
};

ConvArguments read_conv(TorchContext& c, std::size_t rank) {
  return {per_axis(c, "stride", rank, 1, 1),
          per_axis(c, "padding", rank, 0, 0),
          per_axis(c, "dilation", rank, 1, 1),
          per_axis(c, "output_padding", rank, 0, 0),
          c.integer("groups", 1),
          c.flag("transposed", false),
          c.has_gradient_templates()};
}

Sym convolved(Sym x, Sym w, Sym bias, const ConvArguments& a) {
  if (a.is_transposed) return transposed_conv(x, w, bias, a.transposed(), a.groups);
  std::vector<Sym> inputs{x, w};
  if (bias) inputs.push_back(bias);
  return conv(
      inputs,
      {{"strides", a.strides}, {"pads", twice(a.padding)}, {"dilations", a.dilations}, {"groups", a.groups}});
}

void convolution(TorchContext& c) {
  const Sym w = c.tensor("weight");
  const std::size_t rank = spatial_dims(w).size();
  const Sym x = c.tensor("input");
  c.output(reshape(convolved(x, w, c.optional("bias"), read_conv(c, rank)), c.result_dims()));
}

/// The gradient of a convolution by its input is the transposed convolution, and the other way round.
Sym input_gradient(Sym grad, Sym x, Sym w, ConvArguments a) {
  if (a.is_transposed) {
    a.is_transposed = false;
    Sym found = convolved(grad, w, {}, a);
    for (int axis = 2; axis < x.rank(); ++axis)  // where the padding of the result is a stride or more
      if (found.dim(axis) > x.dim(axis)) found = slice(found, axis, 0, x.dim(axis));
    return found;
  }
  const Dims kernel = spatial_dims(w), spatial = spatial_dims(x), outputs = spatial_dims(grad);
  for (std::size_t i = 0; i < kernel.size(); ++i)
    a.output_padding[i] = spatial[i] - ((outputs[i] - 1) * a.strides[i] - 2 * a.padding[i] +
                                        (kernel[i] - 1) * a.dilations[i] + 1);
  return transposed_conv(grad, w, {}, a.transposed(), a.groups);
}

/// A convolution and what its gradient by the filter is made of.
struct FilterGradient {
  Sym grad, x;
  Dims filter_dims;
  EvenWindow window;
  std::int64_t groups;
};

/// Signals as images of one line.
FilterGradient of_lines(const FilterGradient& g) {
  const auto with_line = [](Dims dims, std::int64_t line) {
    dims.insert(dims.end() - 1, line);
    return dims;
  };
  const auto image = [&](Sym signal) { return reshape(signal, with_line(signal.dims(), 1)); };
  return {image(g.grad),
          image(g.x),
          with_line(g.filter_dims, 1),
          {with_line(g.window.strides, 1), with_line(g.window.padding, 0), with_line(g.window.dilations, 1)},
          g.groups};
}

/// In one operation, where kernels take that; else none.
Sym kept_filter_gradient(GradientKernels kernels, const FilterGradient& g) {
  if (kernels == GradientKernels::none) return {};
  if (g.x.rank() == 3) {
    const Sym lines = kept_filter_gradient(kernels, of_lines(g));
    return lines ? reshape(lines, g.filter_dims) : Sym();
  }
  const bool is_on_blocks = kernels == GradientKernels::blocks;
  const bool is_kept = is_on_blocks ? is_kept_in_blocks(g.grad, g.x, g.filter_dims, g.window, g.groups)
                                    : is_kept_whole(g.grad, g.x, g.groups);
  if (!is_kept) return {};
  return (is_on_blocks ? filter_gradient_of_blocks : whole_filter_gradient)(g.grad, g.x, g.filter_dims,
                                                                            g.window, g.groups);
}

/// By the filter.
Sym gradient_of_filter(TorchContext& c, const FilterGradient& g) {
  if (c.has_gradient_templates() && g.x.rank() == 3)  // also where it is made of others
    return reshape(gradient_of_filter(c, of_lines(g)), g.filter_dims);
  const Sym kept = kept_filter_gradient(c.gradients(), g);
  return kept ? kept : filter_gradient(g.grad, g.x, g.filter_dims, g.window, g.groups);
}

void convolution_backward(TorchContext& c) {
  const Sym grad = c.tensor("grad_output");
  const Sym x = c.tensor("input");
  const Sym w = c.tensor("weight");
  c.ignore("bias_sizes");
  const ConvArguments a = read_conv(c, spatial_dims(w).size());
  const Dims mask = c.integers("output_mask");
  if (mask.size() != 3 || x.rank() != w.rank()) throw UnsupportedError("the arguments do not fit a batch");
  std::vector<Sym> results(3);
  if (mask[0] != 0) results[0] = input_gradient(grad, x, w, a);
  // A transposed convolution takes its result to its input by the same filters.
  const Sym from = a.is_transposed ? x : grad, to = a.is_transposed ? grad : x;
  const EvenWindow window = {a.strides, a.padding, a.dilations};
  if (mask[1] != 0) results[1] = gradient_of_filter(c, {from, to, w.dims(), window, a.groups});
  if (mask[2] != 0) {
    std::vector<std::int64_t> axes = all_axes(grad.rank());
    axes.erase(axes.begin() + 1);
    results[2] = reduce(Op::reduce_sum, grad, axes, false);
  }
  c.outputs(std::move(results));
}

template <std::size_t rank>
MapWindow read_pool_window(TorchContext& c) {
  MapWindow window;
  window.kernel = per_axis(c, "kernel_size", rank, 1, 1);
  window.strides = c.integers("stride", Dims{});
  if (window.strides.empty()) window.strides = window.kernel;
  if (window.strides.size() == 1) window.strides.assign(rank, window.strides[0]);
  if (window.strides.size() != rank) throw ModelError("'stride' has {} values", window.strides.size());
  check_extents("stride", window.strides, 1);
  window.pads = twice(per_axis(c, "padding", rank, 0, 0));
  window.dilations = Dims(rank, 1);
  return window;
}

Dims read_extension(TorchContext& c, const MapWindow& window, Sym x) {
  return c.flag("ceil_mode", false) ? ceil_extension(window, spatial_dims(x)) : Dims(window.rank(), 0);
}

template <std::size_t rank>
void max_pool_with_positions(TorchContext& c) {
  const Sym x = batched(c.tensor("self"), rank);
  MapWindow window = read_pool_window<rank>(c);
  window.dilations = per_axis(c, "dilation", rank, 1, 1);
  window = extended(window, read_extension(c, window, x));
  c.outputs({reshape(max_pool(x, window), c.result_dims(0)),
             reshape(max_positions(x, window, false), c.result_dims(1))});
}

/// Adds each gradient where its maximum was.
Sym added_at(TorchContext& c, Sym grad, Sym x, Sym positions) {
  const std::int64_t map = checked_product(spatial_dims(x), "map");
  const std::int64_t windows = checked_product(spatial_dims(grad), "windows");
  const std::int64_t maps = x.dim(0) * x.dim(1);
  const Sym zeros = c.builder().filled(grad.dtype(), {maps, map}, 0);
  const Sym sums = c.builder().add(
      Op::scatter_elements, {zeros, reshape(positions, {maps, windows}), reshape(grad, {maps, windows})},
      {{"axis", std::int64_t{1}}, {"reduction", std::string("add")}});
  return reshape(sums, x.dims());
}

template <std::size_t rank>
void max_pool_backward(TorchContext& c) {
  for (const std::string_view name : {"kernel_size", "stride", "padding", "dilation", "ceil_mode"})
    c.ignore(name);
  const Sym grad = batched(c.tensor("grad_output"), rank), x = batched(c.tensor("self"), rank);
  c.output(reshape(added_at(c, grad, x, batched(c.tensor("indices"), rank)), c.result_dims()));
}

/// The same without positions, which are found again.
void max_pool_gradient(TorchContext& c) {
  const Sym grad = batched(c.tensor("grad_output"), 2), x = batched(c.tensor("self"), 2);
  MapWindow window = read_pool_window<2>(c);
  window.dilations = per_axis(c, "dilation", 2, 1, 1);
  window = extended(window, read_extension(c, window, x));
  const bool is_kept = c.has_gradient_templates() && is_half(x.dtype());
  const Sym result = is_kept ? c.builder().add(Op::max_pool_gradient, {grad, x},
                                               {{"kernel", window.kernel},
                                                {"strides", window.strides},
                                                {"pads", window.pads},
                                                {"dilations", window.dilations}})
                             : added_at(c, grad, x, max_positions(x, window, false));
  c.output(reshape(result, c.result_dims()));
}

/// Integers: a mean is cut toward zero. Whole ones are kept from lying below themselves.
Sym cut_mean(Sym mean, double largest_divisor) {
  const double step = 0.5 / largest_divisor;
  return cast(where(apply(Op::less, mean, 0.0), mean - step, mean + step), DType::i64);
}

template <std::size_t rank>
void average_pool_op(TorchContext& c) {
  const Sym given = batched(c.tensor("self"), rank);
  const Sym x = is_float(given.dtype()) ? given : cast(given, DType::f64);
  const MapWindow window = read_pool_window<rank>(c);
  const Dims extension = read_extension(c, window, x);
  auto divisor = static_cast<double>(checked_product(window.kernel, "window"));
  Sym y;
  if (c.has("divisor_override")) {
    const MapWindow whole = extended(window, extension);
    const double scale = divisor / c.real("divisor_override");
    y = average_pool(x, whole, Dims(rank, 0), true) * scale;
    divisor = std::abs(c.real("divisor_override"));
    c.ignore("count_include_pad");
  } else {
    y = average_pool(x, window, extension, c.flag("count_include_pad", true));
  }
  c.output(reshape(is_float(given.dtype()) ? y : cut_mean(y, divisor), c.result_dims()));
}

/// One axis of an adaptive pooling: output i is the mean of what lies from floor(i from / to) to ceil((i + 1) from / to).
Sym average_to(Sym x, int axis, std::int64_t to) {
  const std::int64_t from = x.dim(axis);
  if (from == to) return x;
  x.builder().reserve_table({to, from});
  std::vector<double> table(static_cast<std::size_t>(from * to), 0);
  for (std::int64_t i = 0; i < to; ++i) {
    const std::int64_t start = i * from / to, stop = ((i + 1) * from + to - 1) / to;
    for (std::int64_t j = start; j < stop; ++j)
      table[static_cast<std::size_t>(j * to + i)] = 1 / static_cast<double>(stop - start);
  }
  const Sym weights = x.builder().reals(x.dtype(), {from, to}, table);
  return swap_axes(matmul(swap_axes(x, axis, -1), weights), axis, -1);
}

template <std::size_t rank>
void adaptive_average_pool(TorchContext& c) {
  Sym x = batched(c.tensor("self"), rank);
  const Dims to = per_axis(c, "output_size", rank, 1, 0);
  const Dims from = spatial_dims(x);
  if (to == Dims(rank, 1)) return c.output(reshape(global_average(x), c.result_dims()));
  bool divides = true;
  for (std::size_t i = 0; i < rank; ++i)
    divides = divides && to[i] > 0 && from[i] % to[i] == 0 && from[i] > 0;
  if (divides) {
    MapWindow window{{}, {}, Dims(rank, 1), Dims(2 * rank, 0)};
    for (std::size_t i = 0; i < rank; ++i) window.kernel.push_back(from[i] / to[i]);
    window.strides = window.kernel;
    return c.output(reshape(average_pool(x, window, Dims(rank, 0), true), c.result_dims()));
  }
  for (std::size_t i = 0; i < rank; ++i) x = average_to(x, static_cast<int>(i) + 2, to[i]);
  c.output(reshape(x, c.result_dims()));
}

/// Per window along an axis, how many elements its mean is over: those of the map, and padding if that counts.
std::vector<double> window_counts(const MapWindow& window, std::size_t axis, std::int64_t extent,
                                  std::int64_t windows, bool counts_padding) {
  std::vector<double> counts;
  const std::int64_t padding = window.pads[axis];
  for (std::int64_t i = 0; i < windows; ++i) {
    const std::int64_t start = i * window.strides[axis] - padding;
    const std::int64_t stop = std::min(start + window.kernel[axis], extent + (counts_padding ? padding : 0));
    counts.push_back(static_cast<double>(stop - (counts_padding ? start : std::max<std::int64_t>(start, 0))));
  }
  return counts;
}

/// The sum of the gradients of all windows that an element is in: a transposed convolution of each map by ones.
template <std::size_t rank>
void average_pool_backward(TorchContext& c) {
  const Sym x = batched(c.tensor("self"), rank);
  Sym grad = batched(c.tensor("grad_output"), rank);
  const MapWindow window = read_pool_window<rank>(c);
  const MapWindow whole = extended(window, read_extension(c, window, x));
  const bool counts_padding = c.flag("count_include_pad", true);
  const Dims spatial = spatial_dims(x), outputs = spatial_dims(grad);
  const bool has_divisor = c.has("divisor_override");
  if (has_divisor) grad = grad / c.real("divisor_override");
  Dims rest;
  for (std::size_t i = 0; i < rank; ++i) {
    rest.push_back(spatial[i] - ((outputs[i] - 1) * window.strides[i] - whole.pads[i] - whole.pads[rank + i] +
                                 window.kernel[i]));
    Dims line(rank + 2, 1);
    line[i + 2] = outputs[i];
    if (!has_divisor)
      grad = grad / c.builder().reals(x.dtype(), line,
                                      window_counts(window, i, spatial[i], outputs[i], counts_padding));
  }
  Dims filter{1, 1}, maps{x.dim(0) * x.dim(1), 1};
  filter.insert(filter.end(), window.kernel.begin(), window.kernel.end());
  maps.insert(maps.end(), outputs.begin(), outputs.end());
  const Dims begin(whole.pads.begin(), whole.pads.begin() + rank);
  const Dims end(whole.pads.begin() + rank, whole.pads.end());
  const Sym sums = transposed_conv(reshape(grad, maps), c.builder().filled(x.dtype(), filter, 1), {},
                                   {window.strides, window.dilations, rest, begin, end}, 1);
  c.output(reshape(sums, c.result_dims()));
}

/// Positions along an axis [to, most] that each result of an adaptive pooling reads. A range with fewer than `most` ends
/// with its last position again, which changes no maximum, and not where that is first.
std::vector<std::int64_t> adaptive_positions(std::int64_t from, std::int64_t to, std::int64_t most) {
  std::vector<std::int64_t> positions;
  for (std::int64_t i = 0; i < to; ++i)
    for (std::int64_t j = 0; j < most; ++j)
      positions.push_back(std::min(i * from / to + j, ((i + 1) * from + to - 1) / to - 1));
  return positions;
}

/// Maxima, and where in the map they are.
template <std::size_t rank>
void adaptive_max_pool(TorchContext& c) {
  GraphBuilder& b = c.builder();
  Sym x = batched(c.tensor("self"), rank);
  const Dims from = spatial_dims(x), to = per_axis(c, "output_size", rank, 1, 1);
  Dims windows = x.dims();
  std::vector<std::int64_t> perm{0, 1};
  Sym places = b.scalar(DType::i64, 0);  // in the map, [to..., most...]
  std::int64_t taps = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t most = (from[i] + to[i] - 1) / to[i] + (from[i] % to[i] == 0 ? 0 : 1);
    const Sym positions =
        b.constant(Tensor::of(DType::i64, {to[i], most}, adaptive_positions(from[i], to[i], most)));
    x = gather(x, positions, static_cast<int>(2 + 2 * i));
    Dims at(2 * rank, 1);
    at[i] = to[i];
    at[rank + i] = most;
    places = places * static_cast<double>(from[i]) + reshape(positions, at);
    perm.push_back(static_cast<std::int64_t>(2 + 2 * i));
    windows[2 + i] = to[i];
    taps *= most;
  }
  for (std::size_t i = 0; i < rank; ++i) perm.push_back(static_cast<std::int64_t>(3 + 2 * i));
  windows.push_back(taps);
  const Sym lines = reshape(transpose(x, perm), windows);
  const std::int64_t last = lines.rank() - 1;
  const Sym first = b.add(Op::arg_max, {lines}, {{"axis", last}, {"keepdims", std::int64_t{1}}});
  Dims flat(windows.begin() + 2, windows.end());
  const Sym all = broadcast_to(reshape(places, flat), windows);
  const Sym found = b.add(Op::gather_elements, {all, first}, {{"axis", last}});
  c.outputs({reshape(reduce(Op::reduce_max, lines, {last}, false), c.result_dims(0)),
             reshape(found, c.result_dims(1))});
}

/// Each gradient, shared among the elements of its range.
template <int rank>
void adaptive_average_pool_backward(TorchContext& c) {
  const Sym x = batched(c.tensor("self"), rank);
  Sym grad = batched(c.tensor("grad_output"), rank);
  for (int axis = 2; axis < rank + 2; ++axis) {
    const std::int64_t from = x.dim(axis), to = grad.dim(axis);
    if (from == to) continue;
    const Sym identity = cast(apply(Op::equal, c.builder().iota(DType::i64, {from, from}, 0),
                                    c.builder().iota(DType::i64, {from, from}, 1)),
                              x.dtype());
    grad =
        swap_axes(matmul(swap_axes(grad, axis, -1), swap_axes(average_to(identity, 1, to), 0, 1)), axis, -1);
  }
  c.output(reshape(grad, c.result_dims()));
}

constexpr std::string_view conv_schema =
    "input weight bias stride padding dilation transposed output_padding groups";
constexpr std::string_view max_schema = "self kernel_size stride padding dilation ceil_mode";
constexpr std::string_view average_schema =
    "self kernel_size stride padding ceil_mode count_include_pad divisor_override";
constexpr std::string_view average_backward_schema =
    "grad_output self kernel_size stride padding ceil_mode count_include_pad divisor_override";
constexpr std::string_view max_backward_schema =
    "grad_output self kernel_size stride padding dilation ceil_mode indices";
constexpr std::string_view max_gradient_schema =
    "grad_output self kernel_size stride padding dilation ceil_mode";

const TorchOp window_rows[] = {
    {"aten._adaptive_avg_pool2d.default", "self output_size", adaptive_average_pool<2>},
    {"aten._adaptive_avg_pool2d_backward.default", "grad_output self", adaptive_average_pool_backward<2>},
    {"aten._adaptive_avg_pool3d.default", "self output_size", adaptive_average_pool<3>},
    {"aten._adaptive_avg_pool3d_backward.default", "grad_output self", adaptive_average_pool_backward<3>},
    {"aten.adaptive_avg_pool1d.default", "self output_size", adaptive_average_pool<1>},
    {"aten.adaptive_max_pool2d.default", "self output_size", adaptive_max_pool<2>},
    {"aten.adaptive_max_pool2d_backward.default", "grad_output self indices", max_pool_backward<2>},
    {"aten.adaptive_max_pool3d.default", "self output_size", adaptive_max_pool<3>},
    {"aten.adaptive_max_pool3d_backward.default", "grad_output self indices", max_pool_backward<3>},
    {"aten.avg_pool1d.default",
     "self kernel_size stride padding ceil_mode count_include_pad divisor_override", average_pool_op<1>},
    {"aten.avg_pool2d.default", average_schema, average_pool_op<2>},
    {"aten.avg_pool2d_backward.default", average_backward_schema, average_pool_backward<2>},
    {"aten.avg_pool3d.default", average_schema, average_pool_op<3>},
    {"aten.avg_pool3d_backward.default", average_backward_schema, average_pool_backward<3>},
    {"aten.convolution.default", conv_schema, convolution},
    {"aten.convolution_backward.default",
     "grad_output input weight bias_sizes stride padding dilation transposed output_padding groups "
     "output_mask",
     convolution_backward},
    {"aten.max_pool2d_with_indices.default", max_schema, max_pool_with_positions<2>},
    {"aten.max_pool2d_with_indices_backward.default", max_backward_schema, max_pool_backward<2>},
    {"aten.max_pool3d_with_indices.default", max_schema, max_pool_with_positions<3>},
    {"aten.max_pool3d_with_indices_backward.default", max_backward_schema, max_pool_backward<3>},
    {"sylvite.max_pool_gradient.default", max_gradient_schema, max_pool_gradient},
};

}  // namespace

std::span<const TorchOp> torch_window_ops() {
  return window_rows;
}

}  // namespace sylvite
