#include "base/error.h"
#include "lowering/algorithm_builder.h"
#include "lowering/algorithm_forms.h"
#include "lowering/problems.h"

// Forms conv_blocked and depthwise_blocked: 2-D convolution into a channel-blocked output. With v0 the
// convolution:
//   v0_in(d0, d1, d2, d3, d4)   the input with its zero border: channel in block, x, y, block, batch; x and y
//   are the
//                               input's own coordinates, so that the border starts below 0
//   v0_fold(d0, d1, d2, d3, d4) the accumulator over v0's storage coordinates. Its update folds over r0
//   (channel in a
//                               fold block, which divides the channels), r1 (window x), r2 (window y), r3
//                               (fold block); depthwise: r0 (window x), r1 (window y)
//   v0                          v0_fold plus the bias
// Weights are packed by blocks of output channels, zero-padded, so that both are read without % or /.

namespace sylvite {
namespace {

using Halide::Expr;
using Halide::Func;
using Halide::Var;

ConvProblem require_conv(const Kernel& kernel, bool depthwise) {
  Reading<ConvProblem> reading = read_conv(kernel, depthwise);
  if (!reading.refusal.empty())
    throw UnsupportedError("a blocked convolution cannot take the kernel: {}", reading.refusal);
  return reading.problem;
}

int to_int(std::int64_t value) {
  return static_cast<int>(value);
}

/// The source has all its few channels in one block.
bool has_few_channels(const ConvProblem& problem) {
  return problem.source_block < problem.block;
}

Packing filter_packing(const ConvProblem& problem) {
  if (problem.depthwise) return {{problem.block, 1, 1, 1}, {0, 2, 4, 6, 1}};
  if (has_few_channels(problem)) return {{problem.block, 1, 1, 1}, {0, 4, 6, 2, 1}};
  if (problem.fold_block == 1) return {{problem.block, 1, 1, 1}, {0, 2, 4, 6, 1}};
  return {{problem.block, problem.fold_block, 1, 1}, {0, 2, 4, 6, 3, 1}};
}

bool is_weight(const Kernel& kernel, ValueId id) {
  for (std::size_t i = 0; i < kernel.body.inputs.size(); ++i) {
    if (kernel.body.inputs[i] == id) return kernel.input_is_weight.at(i);
  }
  return false;
}

/// A bias that only the convolution reads is padded to whole blocks.
bool bias_is_packed(const Kernel& kernel, const ConvProblem& problem) {
  if (problem.bias == no_value || !is_weight(kernel, problem.bias)) return false;
  return kernel.body.uses()[static_cast<std::size_t>(problem.bias)].size() == 1;
}

std::vector<Packing> conv_packings(const Kernel& kernel, const ConvProblem& problem) {
  std::vector<Packing> packings = layout_packings(kernel);
  for (std::size_t i = 0; i < packings.size(); ++i) {
    const ValueId id = kernel.body.inputs[i];
    if (id == problem.weight) packings[i] = filter_packing(problem);
    if (id == problem.bias && bias_is_packed(kernel, problem)) packings[i] = {{problem.block}, {0, 1}};
  }
  return packings;
}

/// The input extended by zeros. The select goes wherever schedules put the stage: a padded copy, or inline.
void define_source(AlgorithmBuilder& builder, const ConvProblem& p, Func& source) {
  const std::vector<Var> d = {Var("d0"), Var("d1"), Var("d2"), Var("d3"), Var("d4")};
  const Expr x = p.padded ? Halide::clamp(d[1], 0, to_int(p.width) - 1) : Expr(d[1]);
  const Expr y = p.padded ? Halide::clamp(d[2], 0, to_int(p.height) - 1) : Expr(d[2]);
  Coordinate channel = Coordinate::split(d[3], d[0], p.source_block, p.channels);
  if (has_few_channels(p)) channel = Expr(d[0]);
  const Expr element = builder.read(p.x, {Expr(d[4]), channel, y, x});
  const Expr inside = d[1] >= 0 && d[1] < to_int(p.width) && d[2] >= 0 && d[2] < to_int(p.height);
  source(d) = p.padded ? Halide::select(inside, element, 0.0F) : element;
}

/// Where output coordinate `out` plus window coordinate `window` lies in the source.
Expr source_coordinate(const Expr& out, const Expr& window, std::int64_t stride, std::int64_t dilation,
                       std::int64_t pad) {
  return out * to_int(stride) + window * to_int(dilation) - to_int(pad);
}

void define_fold(AlgorithmBuilder& builder, const ConvProblem& p, const Func& source, Func& fold) {
  const std::vector<Var> d = AlgorithmBuilder::vars_of(builder.type(p.anchor));
  const Halide::ImageParam& filter = builder.parameter(p.weight);
  const std::vector<std::int64_t> window = {p.kernel_x, p.kernel_y};
  const Halide::RDom r =
      p.depthwise ? reduction_domain(window)
                  : reduction_domain({p.fold_block, window[0], window[1], p.channels / p.fold_block});
  const Expr kx = p.depthwise ? r[0] : r[1];
  const Expr ky = p.depthwise ? r[1] : r[2];
  const Expr x = source_coordinate(d[1], kx, p.stride_x, p.dilation_x, p.pad_left);
  const Expr y = source_coordinate(d[2], ky, p.stride_y, p.dilation_y, p.pad_top);
  fold(d) = 0.0F;
  if (p.depthwise) {
    fold(d) += source(d[0], x, y, d[3], d[4]) * filter(d[0], kx, ky, 0, d[3]);
  } else if (has_few_channels(p)) {
    fold(d) += source(r[0], x, y, r[3], d[4]) * filter(d[0], r[0], kx, ky, d[3]);
  } else if (p.fold_block == 1) {
    fold(d) +=
        source(r[3] % p.source_block, x, y, r[3] / p.source_block, d[4]) * filter(d[0], kx, ky, r[3], d[3]);
  } else {
    const int ratio = p.source_block / p.fold_block;
    fold(d) += source(r[3] % ratio * p.fold_block + r[0], x, y, r[3] / ratio, d[4]) *
               filter(d[0], r[0], kx, ky, r[3], d[3]);
  }
}

Algorithm build_conv(const Kernel& kernel, bool depthwise) {
  const ConvProblem problem = require_conv(kernel, depthwise);
  AlgorithmBuilder builder(kernel, conv_packings(kernel, problem));
  builder.define_before(kernel.anchor);
  const std::string& name = builder.name(problem.anchor);
  Func source = builder.stage(name + "_in");
  Func fold = builder.stage(name + "_fold");
  define_source(builder, problem, source);
  define_fold(builder, problem, source, fold);
  const bool packed_bias = bias_is_packed(kernel, problem);
  builder.define(problem.anchor, [&](const Coordinates& at) -> Expr {
    const std::vector<Expr> d = AlgorithmBuilder::arguments_of(builder.type(problem.anchor), at);
    if (problem.bias == no_value) return fold(d);
    if (packed_bias) return fold(d) + builder.parameter(problem.bias)(d[0], d[3]);
    return fold(d) + builder.read(problem.bias, {at[1]});
  });
  builder.define_rest();
  return builder.finish();
}

}  // namespace

std::vector<Packing> conv_blocked_packings(const Kernel& kernel, const Form&) {
  return conv_packings(kernel, require_conv(kernel, false));
}
Algorithm build_conv_blocked(const Kernel& kernel, const Form&) {
  return build_conv(kernel, false);
}

std::vector<Packing> depthwise_blocked_packings(const Kernel& kernel, const Form&) {
  return conv_packings(kernel, require_conv(kernel, true));
}
Algorithm build_depthwise_blocked(const Kernel& kernel, const Form&) {
  return build_conv(kernel, true);
}

}  // namespace sylvite
