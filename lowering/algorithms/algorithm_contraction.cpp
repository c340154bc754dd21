#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/ops/facts.h"
#include "lowering/algorithms/algorithm_nodes.h"
#include "lowering/algorithms/halide_math.h"
#include "lowering/algorithms/halide_types.h"

// Matmul, convolution and pooling, plain. Stages: vN_fold with the sum (or maximum) over the window as update
// 0. Convolution and pooling fold over r0.. = window (innermost spatial dim first), then input channels; a
// blocked input has its channel-in-block as r0.

namespace sylvite {
namespace {

using Halide::cast;
using Halide::Expr;
using Halide::Func;
using Halide::select;
using Halide::Var;

Expr zero_of(const Halide::Type& type) {
  return Halide::Internal::make_zero(type);
}

/// Strides, pads and dilations of a window operation, per spatial dim.
struct Window {
  std::vector<std::int64_t> kernel;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> pads;
  std::vector<std::int64_t> dilations;
};

/// Where window tap `tap` of output element `at` reads, clamped into the input, and whether it was inside.
struct Tap {
  Coordinates spatial;
  Expr is_inside;
};
Tap tap_at(const AlgorithmBuilder& builder, const Window& window, const Coordinates& at,
           const Coordinates& taps, const Shape& input) {
  Tap result{{}, Halide::Internal::const_true()};
  for (std::size_t s = 0; s < window.kernel.size(); ++s) {
    const Expr position = at[s + 2].full * static_cast<int>(window.strides[s]) +
                          taps[s].full * static_cast<int>(window.dilations[s]) -
                          static_cast<int>(window.pads[s]);
    const std::int64_t low = window.pads[s];
    const std::int64_t high = window.pads[s + window.kernel.size()];
    const bool may_leave = low != 0 || high != 0;
    result.spatial.emplace_back(may_leave ? Halide::clamp(position, 0, builder.extent(input[s + 2] - 1))
                                          : position);
    if (low != 0) result.is_inside = result.is_inside && position >= 0;
    if (high != 0 || low != 0) result.is_inside = result.is_inside && position < builder.extent(input[s + 2]);
  }
  return result;
}

/// The domain over window taps and, if `channels` > 0, the channels of one group. Layout: see the head of the
/// file.
struct WindowDomain {
  Halide::RDom domain;
  Coordinates taps;    ///< per spatial dim
  Coordinate channel;  ///< within the group
};
WindowDomain window_domain(const std::vector<std::int64_t>& kernel, std::int64_t channels, int block) {
  std::vector<std::int64_t> extents;
  const bool blocked = channels > 0 && block > 0;
  if (blocked) extents.push_back(block);
  extents.insert(extents.end(), kernel.rbegin(), kernel.rend());
  if (channels > 0) extents.push_back(blocked ? ceil_div(channels, block) : channels);
  WindowDomain result{reduction_domain(extents), {}, {}};
  const int first = blocked ? 1 : 0;
  const int spatial = static_cast<int>(kernel.size());
  for (int s = 0; s < spatial; ++s) result.taps.emplace_back(Expr(result.domain[first + spatial - 1 - s]));
  if (channels == 0) return result;
  const Expr outer = result.domain[first + spatial];
  if (!blocked) {
    result.channel = Coordinate(outer);
    return result;
  }
  result.channel = Coordinate::split(outer, Expr(result.domain[0]), block, channels);
  if (channels % block != 0)
    result.domain.where(outer * block + result.domain[0] < static_cast<int>(channels));
  return result;
}

/// The type sums are made in: f32 for 16-bit floats, the compute type otherwise.
Halide::Type sum_type(DType dtype) {
  return compute_type_of(dtype);
}

/// The input channel that channel `within` of output channel `out` reads.
Coordinate input_channel(const Coordinate& out, const Coordinate& within, std::int64_t out_per_group,
                         std::int64_t in_per_group, std::int64_t groups) {
  if (groups == 1) return within;
  if (in_per_group == 1 && out_per_group == 1) return out;
  return Coordinate((out.full / static_cast<int>(out_per_group)) * static_cast<int>(in_per_group) +
                    within.full);
}

/// Only the leading dims broadcast. A contracted extent of 1 is read through its loop, which schedules name.
Expr read_matrix(AlgorithmBuilder& builder, ValueId id, const Coordinates& at) {
  const Shape& shape = builder.type(id).shape;
  Coordinates own;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool is_leading = i + 2 < shape.size();
    own.push_back(is_leading && shape[i] == 1 ? Coordinate(0) : at.at(at.size() - shape.size() + i));
  }
  return builder.read(id, own);
}

}  // namespace

void define_matmul(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front();
  const TensorType& type = builder.type(out);
  const std::vector<Var> vars = AlgorithmBuilder::vars_of(type);
  const Coordinates at = AlgorithmBuilder::coordinates_of(type);
  const std::size_t rank = at.size();
  const Halide::RDom domain =
      open_reduction_domain({builder.extent(builder.type(node.inputs[0]).shape.back())});
  Coordinates at_a = at;
  Coordinates at_b = at;
  at_a[rank - 1] = Expr(domain[0]);
  at_b[rank - 2] = Expr(domain[0]);
  const Expr a = read_matrix(builder, node.inputs[0], at_a);
  const Expr b = read_matrix(builder, node.inputs[1], at_b);
  Func folded = builder.stage(builder.name(out) + "_fold");
  const Halide::Type sum = sum_type(type.dtype);
  folded(vars) = zero_of(sum);
  folded(vars) += cast(sum, a) * cast(sum, b);
  builder.define(out, [&](const Coordinates&) { return Expr(folded(vars)); });
}

void define_conv(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front();
  const ValueId input = node.inputs[0];
  const ValueId weight = node.inputs[1];
  const TensorType& type = builder.type(out);
  const TensorType& in_type = builder.type(input);
  const Dims weight_dims = builder.type(weight).dims();
  const std::int64_t groups = node.attributes.integer("groups");
  const std::int64_t in_per_group = weight_dims[1];
  const std::int64_t out_per_group = weight_dims[0] / groups;
  const Window window{{weight_dims.begin() + 2, weight_dims.end()},
                      node.attributes.integers("strides"),
                      node.attributes.integers("pads"),
                      node.attributes.integers("dilations")};

  // With groups, channels of one group are counted from its own start, so blocks do not line up in general.
  const int block = groups == 1 ? in_type.layout.channel_block : 0;
  const WindowDomain over = window_domain(window.kernel, in_per_group, block);
  const std::vector<Var> vars = AlgorithmBuilder::vars_of(type);
  const Coordinates at = AlgorithmBuilder::coordinates_of(type);
  const Tap tap = tap_at(builder, window, at, over.taps, in_type.shape);
  Coordinates at_input = {at[0], input_channel(at[1], over.channel, out_per_group, in_per_group, groups)};
  at_input.insert(at_input.end(), tap.spatial.begin(), tap.spatial.end());
  Coordinates at_weight = {at[1], over.channel};
  at_weight.insert(at_weight.end(), over.taps.begin(), over.taps.end());

  const Halide::Type sum = sum_type(type.dtype);
  const Expr x = cast(sum, builder.read_rounded(input, at_input));
  const Expr inside = select(tap.is_inside, x, zero_of(sum));
  Func folded = builder.stage(builder.name(out) + "_fold");
  folded(vars) = zero_of(sum);
  folded(vars) += inside * cast(sum, builder.read(weight, at_weight));
  const bool has_bias = node.inputs.size() > 2 && node.inputs[2] != no_value;
  builder.define(out, [&](const Coordinates&) -> Expr {
    const Expr total = folded(vars);
    return has_bias ? strict_add(total, builder.read(node.inputs[2], {at[1]})) : total;
  });
}

void define_filter_gradient(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front();
  const TensorType& type = builder.type(out);
  const Dims gradient = builder.type(node.inputs[0]).dims();
  const Window window{node.attributes.integers("kernel"), node.attributes.integers("strides"),
                      node.attributes.integers("pads"), node.attributes.integers("dilations")};
  const std::int64_t part = filter_gradient_part(gradient, node.attributes.integer("parts"));
  const std::vector<Var> vars = AlgorithmBuilder::vars_of(type);
  const Coordinates at = AlgorithmBuilder::coordinates_of(type);  // part, tap, output, channel of the group
  const Halide::RDom domain = reduction_domain({part});
  const std::size_t rank = window.kernel.size();
  const std::int64_t side_by_side = node.attributes.integer("joined") != 0 ? window.kernel.back() : 1;
  const std::int64_t channels = type.dims()[3] / side_by_side;
  Expr pixel = at[0].full * to_int(part) + domain[0];
  Expr tap = at[1].full * to_int(side_by_side) + at[3].full / to_int(channels);
  const Expr channel = at[3].full % to_int(channels);
  const std::int64_t pixels = checked_product({gradient.begin() + 2, gradient.end()}, "map");
  const Expr is_there = pixel < to_int(gradient[0] * pixels);
  pixel = Halide::min(pixel, to_int(gradient[0] * pixels - 1));
  Coordinates at_gradient = {pixel / to_int(pixels), at[2]};
  at_gradient.resize(rank + 2);
  Coordinates taps(rank);
  for (std::size_t s = rank; s-- > 0;) {
    at_gradient[s + 2] = pixel % to_int(gradient[s + 2]);
    pixel = pixel / to_int(gradient[s + 2]);
    taps[s] = tap % to_int(window.kernel[s]);
    tap = tap / to_int(window.kernel[s]);
  }
  const Tap met = tap_at(builder, window, at_gradient, taps, builder.type(node.inputs[1]).shape);
  const std::int64_t groups = node.attributes.integer("groups"), outputs = gradient[1] / groups;
  Coordinates at_input = {at_gradient[0], input_channel(at[2], channel, outputs, channels, groups)};
  at_input.insert(at_input.end(), met.spatial.begin(), met.spatial.end());
  const Halide::Type sum = sum_type(type.dtype);
  const Expr x = cast(sum, builder.read_rounded(node.inputs[1], at_input));
  const Expr grad = cast(sum, builder.read_rounded(node.inputs[0], at_gradient));
  Func folded = builder.stage(builder.name(out) + "_fold");
  folded(vars) = zero_of(sum);
  folded(vars) += select(is_there && met.is_inside, x * grad, zero_of(sum));
  builder.define(out, [&](const Coordinates&) { return Expr(folded(vars)); });
}

void define_max_pool_gradient(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front(), x = node.inputs[1];
  const TensorType &type = builder.type(out), &pooled = builder.type(node.inputs[0]);
  const Window window{node.attributes.integers("kernel"), node.attributes.integers("strides"),
                      node.attributes.integers("pads"), node.attributes.integers("dilations")};
  // Where in its window each result was found.
  const std::vector<Var> pooled_vars = AlgorithmBuilder::vars_of(pooled);
  const Coordinates at = AlgorithmBuilder::coordinates_of(pooled);
  const WindowDomain over = window_domain(window.kernel, 0, 0);
  const Tap tap = tap_at(builder, window, at, over.taps, type.shape);
  Coordinates at_input = {at[0], at[1]};
  at_input.insert(at_input.end(), tap.spatial.begin(), tap.spatial.end());
  const Expr value = cast(sum_type(type.dtype), builder.read(x, at_input));
  const Expr index = over.taps[0].full * to_int(window.kernel[1]) + over.taps[1].full;
  Func place = builder.stage(builder.name(out) + "_place");
  place(pooled_vars) = Halide::Tuple(zero_of(value.type()), Expr(-1));
  const Expr best = place(pooled_vars)[0], best_index = place(pooled_vars)[1];
  const Expr is_first_nan = Halide::is_nan(value) && !Halide::is_nan(best);
  const Expr wins = tap.is_inside && (best_index < 0 || value > best || is_first_nan);
  place(pooled_vars) = Halide::Tuple(select(wins, value, best), select(wins, index, best_index));
  // The windows that an element is in.
  const std::vector<Var> vars = AlgorithmBuilder::vars_of(type);
  const Coordinates to = AlgorithmBuilder::coordinates_of(type);
  Coordinates of_window = {to[0], to[1]};
  Expr is_met = Halide::Internal::const_true();
  for (std::size_t s = 0; s < 2; ++s) {
    const int stride = to_int(window.strides[s]);
    const Expr first =
        to[s + 2].full + to_int(window.pads[s]) - over.taps[s].full * to_int(window.dilations[s]);
    const Expr number = Halide::div_round_to_zero(first, stride);
    is_met = is_met && first >= 0 && number * stride == first && number < builder.extent(pooled.shape[s + 2]);
    of_window.emplace_back(Halide::clamp(number, 0, builder.extent(pooled.shape[s + 2] - 1)));
  }
  const Expr found = place(AlgorithmBuilder::arguments_of(pooled, of_window))[1];
  const Halide::Type sum = sum_type(type.dtype);
  const Expr gradient = cast(sum, builder.read(node.inputs[0], of_window));
  Func folded = builder.stage(builder.name(out) + "_fold");
  folded(vars) = zero_of(sum);
  folded(vars) += select(is_met && found == index, gradient, zero_of(sum));
  builder.define(out, [&](const Coordinates&) { return Expr(folded(vars)); });
}

void define_pool(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front();
  const ValueId input = node.inputs.front();
  const TensorType& type = builder.type(out);
  const Window window{node.attributes.integers("kernel"), node.attributes.integers("strides"),
                      node.attributes.integers("pads"), node.attributes.integers("dilations")};
  const bool is_max = node.op == Op::max_pool;
  const WindowDomain over = window_domain(window.kernel, 0, 0);
  const std::vector<Var> vars = AlgorithmBuilder::vars_of(type);
  const Coordinates at = AlgorithmBuilder::coordinates_of(type);
  const Tap tap = tap_at(builder, window, at, over.taps, builder.type(input).shape);
  Coordinates at_input = {at[0], at[1]};
  at_input.insert(at_input.end(), tap.spatial.begin(), tap.spatial.end());

  const Expr stored = builder.read_stored(input, at_input);
  Func folded = builder.stage(builder.name(out) + "_fold");
  if (is_max && stored.type().is_bfloat()) {
    const Halide::Type key = Halide::Int(16);
    const Expr least = Halide::Internal::make_const(key, -0x7f81);  // of -infinity
    folded(vars) = least;
    folded(vars) =
        Halide::max(folded(vars), select(Halide::likely(tap.is_inside), bf16_order_key(stored), least));
    builder.define(out, [&](const Coordinates&) { return from_bf16_order_key(folded(vars)); });
    return;
  }
  const Expr x = builder.read(input, at_input);
  const Halide::Type element = x.type();
  const Expr lowest = element.is_float()
                          ? Halide::Internal::make_const(element, -std::numeric_limits<double>::infinity())
                          : element.min();
  const Expr start = is_max ? lowest : zero_of(element);
  const Expr inside = select(tap.is_inside, x, start);
  folded(vars) = start;
  folded(vars) = is_max ? nan_max(folded(vars), inside) : folded(vars) + inside;
  if (is_max) {
    builder.define(out, [&](const Coordinates&) { return Expr(folded(vars)); });
    return;
  }
  // The number of taps that count, per spatial dim: all of the window, or those inside the input (or its
  // padding).
  const bool count_padding = node.attributes.integer("count_include_pad") != 0;
  const Shape& in_shape = builder.type(input).shape;
  Expr count = 1;
  for (std::size_t s = 0; s < window.kernel.size(); ++s) {
    const std::int64_t low = count_padding ? -window.pads[s] : 0;
    const Extent high = in_shape[s + 2] + (count_padding ? window.pads[s + window.kernel.size()] : 0);
    const Expr first =
        at[s + 2].full * static_cast<int>(window.strides[s]) - static_cast<int>(window.pads[s]);
    const int dilation = static_cast<int>(window.dilations[s]);
    const int taps = static_cast<int>(window.kernel[s]);
    // Taps t with low <= first + t*dilation < high.
    const Expr from = Halide::max((static_cast<int>(low) - first + dilation - 1) / dilation, 0);
    const Expr to = Halide::min((builder.extent(high - 1) - first) / dilation + 1, taps);
    count = count * Halide::max(to - from, 1);
  }
  builder.define(out, [&](const Coordinates&) { return strict_div(folded(vars), cast(element, count)); });
}

}  // namespace sylvite
