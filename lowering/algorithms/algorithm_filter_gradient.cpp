#include "lowering/algorithms/algorithm_builder.h"
#include "lowering/algorithms/algorithm_forms.h"
#include "lowering/algorithms/conv_parts.h"

// Form filter_gradient_blocked{images, parts}: the gradient of a 2-D convolution by its filter, of a gradient whose channels lie
// in blocks. `parts` parts of as many images each are summed apart, `images` of them at a time. With v0 the filter's gradient:
//   v0_in(d0, d1, d2, d3, d4)             the input with its zero border, as in conv_blocked
//   v0_image(d0, d1, d2, d3, d4, d5, d6)  the sum of image d6 over r0 (x) and r1 (y), for output channel d0 of block d5, input
//                                         channel d1 of block d4, and window x and y, d2 and d3
//                                         (depthwise: d1 and d4 are 0, and the input's channel is the output's; with groups
//                                         d4 is a step of channels, d1 in it, of those that the groups of block d5 have)
//   v0_part(d0, ..., d5, d6)              the same sum of part d6. Its update folds over r0 (of `images`) and r1
//   v0_sum(d0, ..., d5)                   the same of all parts

namespace sylvite {
namespace {

using Halide::Expr;
using Halide::Func;
using Halide::Var;

std::vector<Var> sum_vars(std::size_t count) {
  std::vector<Var> vars;
  for (std::size_t i = 0; i < count; ++i) vars.emplace_back(fmt::format("d{}", i));
  return vars;
}

/// What the output channels of block d5 meet, at pixel (x, y) of image d6.
Expr met_pixel(const FilterGradientProblem& problem, const Func& source, const Expr& x, const Expr& y) {
  const ConvProblem& p = problem.image;
  const std::vector<Var> d = sum_vars(7);
  if (p.depthwise) return source(d[0], x, y, d[5], d[6]);
  if (p.groups == 1) return source(d[1], x, y, d[4], d[6]);
  const int step = problem.channels_in_block(), ratio = p.source_block / step;
  const Expr last = to_int(p.channels / step - 1);  // some blocks have fewer groups than others
  const Expr at = Halide::min(group_steps(p.grouped(), d[5]).first + d[4], last);
  return source(at % ratio * step + d[1], x, y, at / ratio, d[6]);
}

Func define_image(AlgorithmBuilder& builder, const FilterGradientProblem& problem) {
  const ConvProblem& p = problem.image;
  const Func source = define_source(builder, p, border_of(p));
  const std::vector<Var> d = sum_vars(7);
  const Halide::RDom r =
      open_reduction_domain({builder.extent(problem.gradient, 3), builder.extent(problem.gradient, 2)});
  const Expr x = source_coordinate(r[0], d[2], p.stride_x, p.dilation_x, builder.extent(p.pad_left));
  const Expr y = source_coordinate(r[1], d[3], p.stride_y, p.dilation_y, builder.extent(p.pad_top));
  const Coordinate channel = Coordinate::split(d[5], d[0], p.block, p.out_channels);
  const Expr gradient = builder.read(problem.gradient, {Expr(d[6]), channel, Expr(r[1]), Expr(r[0])});
  Func image = builder.stage(builder.name(p.anchor) + "_image");
  image(d) = 0.0F;
  image(d) += gradient * met_pixel(problem, source, x, y);
  return image;
}

Func define_part(AlgorithmBuilder& builder, const FilterGradientProblem& problem, int images, int parts) {
  const Func image = define_image(builder, problem);
  const Expr count = builder.extent(problem.gradient, 0);
  const Expr steps = (count + (parts * images - 1)) / (parts * images);
  const std::vector<Var> d = sum_vars(7);
  Halide::RDom r = open_reduction_domain({Expr(images), steps});
  const Expr number = (d[6] * steps + r[1]) * images + r[0];
  r.where(number < count);
  Func part = builder.stage(builder.name(problem.image.anchor) + "_part");
  part(d) = 0.0F;
  // The source of an image that is none must be in range, too.
  part(d) += image(d[0], d[1], d[2], d[3], d[4], d[5], Halide::min(number, count - 1));
  return part;
}

}  // namespace

Algorithm build_filter_gradient_blocked(const Kernel& kernel, const Form& form) {
  const Reading<FilterGradientProblem> reading = read_filter_gradient(kernel);
  if (!reading.refusal.empty())
    throw UnsupportedError("a gradient by a filter cannot take the kernel: {}", reading.refusal);
  const ConvProblem& p = reading.problem.image;
  AlgorithmBuilder builder(kernel, layout_packings(kernel));
  builder.define_before(builder.body().value(p.anchor).producer);
  const std::int64_t parts = form.at("parts");
  const Func part = define_part(builder, reading.problem, to_int(form.at("images")), to_int(parts));
  const std::vector<Var> d = sum_vars(6);
  const Halide::RDom r = reduction_domain({parts});
  Func sum = builder.stage(builder.name(p.anchor) + "_sum");
  sum(d) = 0.0F;
  sum(d) += part(d[0], d[1], d[2], d[3], d[4], d[5], r[0]);
  builder.define(p.anchor, [&](const Coordinates& at) -> Expr {
    const int block = p.block, source_block = reading.problem.channels_in_block();
    const int width = to_int(p.kernel_x);
    const Expr &tap = at[1].full, &output = at[2].full, &channel = at[3].full;
    Expr step = channel / source_block;
    if (p.groups > 1) {
      const GroupedChannels groups = p.grouped();
      step += output / to_int(groups.outputs) * to_int(groups.inputs / source_block) -
              group_steps(groups, output / block).first;
      step = Halide::clamp(step, 0, to_int(reading.problem.blocks() - 1));
    }
    return sum(output % block, channel % source_block, tap % width, tap / width, step, output / block);
  });
  builder.define_rest();
  return builder.finish();
}

}  // namespace sylvite
