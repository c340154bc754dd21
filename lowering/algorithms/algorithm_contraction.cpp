#include <algorithm>

#include "base/error.h"
#include "frontend/ops/facts.h"
#include "lowering/algorithms/algorithm_nodes.h"
#include "lowering/algorithms/halide_math.h"
#include "lowering/algorithms/halide_types.h"
#include "lowering/algorithms/window_taps.h"

// Matmul and convolution, plain. Stages: vN_fold with the sum over the window as update 0. Convolution folds over r0.. =
// window (innermost spatial dim first), then input channels; a blocked input has its channel-in-block as r0.

namespace sylvite {
namespace {

using Halide::cast;
using Halide::Expr;
using Halide::Func;
using Halide::select;
using Halide::Var;

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
  const SlidingWindow window{{weight_dims.begin() + 2, weight_dims.end()},
                             node.attributes.integers("strides"),
                             node.attributes.extents("pads"),
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
  const ValueId gradient = node.inputs[0];
  const SlidingWindow window = window_of(node);
  const std::size_t rank = window.kernel.size();
  Expr pixels = 1;
  for (std::size_t s = 0; s < rank; ++s) pixels = pixels * builder.extent(gradient, s + 2);
  const Expr all = builder.extent(gradient, 0) * pixels;
  const std::int64_t parts = node.attributes.integer("parts");
  const Expr part =
      parts == 1 ? all : Expr(to_int(filter_gradient_part(builder.type(gradient).dims(), parts)));
  const std::vector<Var> vars = AlgorithmBuilder::vars_of(type);
  const Coordinates at = AlgorithmBuilder::coordinates_of(type);  // part, tap, output, channel of the group
  const Halide::RDom domain = open_reduction_domain({part});
  const std::int64_t side_by_side = node.attributes.integer("joined") != 0 ? window.kernel.back() : 1;
  const std::int64_t channels = type.dims()[3] / side_by_side;
  Expr pixel = at[0].full * part + domain[0];
  Expr tap = at[1].full * to_int(side_by_side) + at[3].full / to_int(channels);
  const Expr channel = at[3].full % to_int(channels);
  const Expr is_there = pixel < all;
  pixel = Halide::min(pixel, all - 1);
  Coordinates at_gradient = {pixel / pixels, at[2]};
  at_gradient.resize(rank + 2);
  Coordinates taps(rank);
  for (std::size_t s = rank; s-- > 0;) {
    at_gradient[s + 2] = pixel % builder.extent(gradient, s + 2);
    pixel = pixel / builder.extent(gradient, s + 2);
    taps[s] = tap % to_int(window.kernel[s]);
    tap = tap / to_int(window.kernel[s]);
  }
  const Tap met = tap_at(builder, window, at_gradient, taps, builder.type(node.inputs[1]).shape);
  const std::int64_t groups = node.attributes.integer("groups"),
                     outputs = builder.type(gradient).shape[1].known() / groups;
  Coordinates at_input = {at_gradient[0], input_channel(at[2], channel, outputs, channels, groups)};
  at_input.insert(at_input.end(), met.spatial.begin(), met.spatial.end());
  const Halide::Type sum = sum_type(type.dtype);
  const Expr x = cast(sum, builder.read_rounded(node.inputs[1], at_input));
  const Expr grad = cast(sum, builder.read_rounded(gradient, at_gradient));
  Func folded = builder.stage(builder.name(out) + "_fold");
  folded(vars) = zero_of(sum);
  folded(vars) += select(is_there && met.is_inside, x * grad, zero_of(sum));
  builder.define(out, [&](const Coordinates&) { return Expr(folded(vars)); });
}

void define_max_pool_gradient(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front(), x = node.inputs[1];
  const TensorType &type = builder.type(out), &pooled = builder.type(node.inputs[0]);
  const SlidingWindow window = window_of(node);
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
        to[s + 2].full + builder.extent(window.pads[s]) - over.taps[s].full * to_int(window.dilations[s]);
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

}  // namespace sylvite
