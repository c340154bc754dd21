#include <utility>

#include "base/error.h"
#include "base/rounding.h"
#include "lowering/algorithms/algorithm_builder.h"
#include "lowering/algorithms/algorithm_forms.h"
#include "lowering/algorithms/conv_parts.h"
#include "lowering/algorithms/dot_product.h"
#include "lowering/algorithms/halide_types.h"
#include "lowering/algorithms/problems.h"

// Forms conv_tiles and conv_lines: bf16 convolutions whose folds fill the rows of AMX's tiles (see
// schedules/directives/amx_tiles.h for what those ask of the fold). With v0 the convolution, of outputs
// stored as (channel in block, x, y, block, batch) = d0..d4:
//   v0_in       conv_tiles: as in conv_blocked
//   v0_fold     update 0 folds over r0 (channel in pair), r1 (pair), r2 (window x), r3 (window y), r4 (block)
// conv_tiles{flat=1}: lines lie one behind the other, flat_pitch pixels apart, so that a tile's rows go on
// from line to line. Sums of border pixels are made, too, and not read.
//   v0_flat(d0, f, d3, d4)   v0_in, f = x + pitch y, counted from the border's first pixel; with strides
//                            f = x + pitch y + plane (r2 + kernel_x r3): the pixels that position (r2, r3)
//                            of the window reads
//   v0_fold(d0, f, d3, d4)   f = x + pitch y
// conv_lines, for images of few channels that are not blocked:
//   v0_in(e, y, d4)          the input with its border, e = x * channels + channel, counted from the border's
//                            first pixel; channels rounded up to even
//   v0_fold                  update 0 folds over r0 (channel in pair), r1 (pair), r2 and r3 (window x and y)

namespace sylvite {
namespace {

using Halide::Expr;
using Halide::Func;
using Halide::Var;

ConvProblem require(const Reading<ConvProblem>& reading) {
  if (!reading.refusal.empty())
    throw UnsupportedError("a convolution in tiles cannot take the kernel: {}", reading.refusal);
  return reading.problem;
}

/// Output channels whose weights lie together: those of a tile, so that it is dense and can be fetched ahead;
/// of a whole block where the last one has channels for less.
int panel_of(const ConvProblem& p) {
  const std::int64_t panels = ceil_div(p.out_channels, panel_width);
  return panels * panel_width % p.block == 0 ? panel_width : p.block;
}

std::vector<Packing> tile_packings(const Kernel& kernel, const ConvProblem& problem) {
  return conv_packings(kernel, problem,
                       {{panel_of(problem), problem.fold_block, 1, 1}, {0, 2, 4, 6, 3, 1, 3}});
}

std::vector<Packing> line_packings(const Kernel& kernel, const ConvProblem& problem) {
  return conv_packings(kernel, problem, {{problem.block, problem.fold_block, 1, 1}, {0, 4, 6, 2, 3, 1, 3}});
}

/// Pixels of one place of the window.
int plane_of(const ConvProblem& p) {
  return to_int(p.out_width * p.out_height);
}

/// The pixel (x, y) of the source that lies at f.
std::pair<Expr, Expr> pixel_at(const AlgorithmBuilder& builder, const ConvProblem& p, const Expr& f) {
  const int pitch = to_int(flat_pitch(p));
  Expr x = f % pitch;
  Expr y = f / pitch;
  if (p.has_strides()) {
    const Expr place = f / plane_of(p);
    const Expr pixel = f % plane_of(p);
    x = (pixel % pitch) * to_int(p.stride_x) + (place % to_int(p.kernel_x)) * to_int(p.dilation_x);
    y = (pixel / pitch) * to_int(p.stride_y) + (place / to_int(p.kernel_x)) * to_int(p.dilation_y);
  }
  return {x - builder.extent(p.pad_left), y - builder.extent(p.pad_top)};
}

/// What is read behind the last pixel is zero, or some other pixel.
Func define_flat_source(AlgorithmBuilder& builder, const ConvProblem& problem) {
  ConvProblem bordered = problem;
  bordered.padded = true;
  const Func source = define_source(builder, bordered, border_of(bordered));
  const Var d0("d0"), f("f"), d3("d3"), d4("d4");
  Func flat = builder.stage(builder.name(problem.anchor) + "_flat");
  const auto [x, y] = pixel_at(builder, problem, f);
  flat(d0, f, d3, d4) = source(d0, x, y, d3, d4);
  return flat;
}

/// How far from an output's pixel a place of the window reads.
Expr flat_offset(const ConvProblem& p, const Halide::RDom& window) {
  if (p.has_strides()) return (window[2] + window[3] * to_int(p.kernel_x)) * plane_of(p);
  return window[2] * to_int(p.dilation_x) + window[3] * to_int(p.dilation_y * flat_pitch(p));
}

Expr filter_of(const AlgorithmBuilder& builder, const ConvProblem& p, const PairedFold& c, const Var& d0,
               const Var& d3) {
  const Halide::RDom& r = c.domain;
  const int panel = panel_of(p);
  return builder.parameter(p.weight)(c.within, d0 % panel, c.outer, r[2], r[3], r[4],
                                     d3 * (p.block / panel) + d0 / panel);
}

Func define_flat_fold(AlgorithmBuilder& builder, const ConvProblem& p, const PairedFold& c) {
  const Var d0("d0"), f("f"), d3("d3"), d4("d4");
  const Func source = define_flat_source(builder, p);
  const Expr at = f + flat_offset(p, c.domain);
  Func fold = builder.stage(builder.name(p.anchor) + "_fold");
  fold(d0, f, d3, d4) = 0.0F;
  fold(d0, f, d3, d4) +=
      stored_product(source(c.whole, at, c.domain[4], d4), filter_of(builder, p, c, d0, d3));
  return fold;
}

Func define_tile_fold(AlgorithmBuilder& builder, const ConvProblem& p, const PairedFold& c) {
  const std::vector<Var> d = AlgorithmBuilder::vars_of(builder.type(p.anchor));
  const Func source = define_source(builder, p, border_of(p));
  const Expr x = d[1] * to_int(p.stride_x) + c.domain[2] * to_int(p.dilation_x) - builder.extent(p.pad_left);
  const Expr y = d[2] * to_int(p.stride_y) + c.domain[3] * to_int(p.dilation_y) - builder.extent(p.pad_top);
  Func fold = builder.stage(builder.name(p.anchor) + "_fold");
  fold(d) = 0.0F;
  fold(d) += stored_product(source(c.whole, x, y, c.domain[4], d[4]), filter_of(builder, p, c, d[0], d[3]));
  return fold;
}

/// Channels of a pixel lie together; padding them to an even number costs a zero weight.
Func define_line_source(AlgorithmBuilder& builder, const ConvProblem& problem) {
  const Var e("e"), y("y"), d4("d4");
  const int channels = problem.fold_block;
  const Expr channel = e % channels;
  const Expr x = e / channels - builder.extent(problem.pad_left);
  const Expr line = y - builder.extent(problem.pad_top);
  const int width = to_int(problem.width), height = to_int(problem.height);
  const int last = to_int(problem.channels) - 1;
  const Expr inside = x >= 0 && x < width && line >= 0 && line < height && channel <= last;
  const Coordinates at = {Expr(d4), Halide::min(channel, last), Halide::clamp(line, 0, height - 1),
                          Halide::clamp(x, 0, width - 1)};
  const Expr element = to_storage(builder.read_stored(problem.x, at), problem.element);
  Func source = builder.stage(builder.name(problem.anchor) + "_in");
  source(e, y, d4) = Halide::select(inside, element, Halide::Internal::make_zero(element.type()));
  return source;
}

Func define_line_fold(AlgorithmBuilder& builder, const ConvProblem& p) {
  const std::vector<Var> d = AlgorithmBuilder::vars_of(builder.type(p.anchor));
  const int channels = p.fold_block;
  const PairedFold c = paired_fold(channels, p.pair(), {p.kernel_x, p.kernel_y});
  const Halide::RDom& r = c.domain;
  const Expr line = d[2] * to_int(p.stride_y) + r[3] * to_int(p.dilation_y);
  const Expr element = (d[1] * to_int(p.stride_x) + r[2]) * channels + c.whole;
  const Func source = define_line_source(builder, p);
  const Expr weight = builder.parameter(p.weight)(c.within, d[0], c.outer, 0, r[2], r[3], d[3]);
  Func fold = builder.stage(builder.name(p.anchor) + "_fold");
  fold(d) = 0.0F;
  fold(d) += stored_product(source(element, line, d[4]), weight);
  return fold;
}

}  // namespace

std::int64_t flat_pitch(const ConvProblem& problem) {
  return problem.has_strides() ? problem.out_width
                               : problem.out_width + (problem.kernel_x - 1) * problem.dilation_x;
}

std::vector<Packing> conv_tiles_packings(const Kernel& kernel, const Form&) {
  return tile_packings(kernel, require(read_conv_tiles(kernel)));
}

Algorithm build_conv_tiles(const Kernel& kernel, const Form& form) {
  const ConvProblem p = require(read_conv_tiles(kernel));
  const bool flat = form.at("flat") != 0;
  AlgorithmBuilder builder(kernel, tile_packings(kernel, p));
  builder.define_before(kernel.anchor);
  const PairedFold c = paired_fold(p.fold_block, p.pair(), {p.kernel_x, p.kernel_y, p.fold_blocks()});
  const Func fold = flat ? define_flat_fold(builder, p, c) : define_tile_fold(builder, p, c);
  define_product(builder, p, [&](const std::vector<Expr>& d) -> Expr {
    return flat ? fold(d[0], d[1] + d[2] * to_int(flat_pitch(p)), d[3], d[4]) : fold(d);
  });
  builder.define_rest();
  return builder.finish();
}

std::vector<Packing> conv_lines_packings(const Kernel& kernel, const Form&) {
  return line_packings(kernel, require(read_conv_lines(kernel)));
}

Algorithm build_conv_lines(const Kernel& kernel, const Form&) {
  const ConvProblem p = require(read_conv_lines(kernel));
  AlgorithmBuilder builder(kernel, line_packings(kernel, p));
  builder.define_before(kernel.anchor);
  const Func fold = define_line_fold(builder, p);
  define_product(builder, p, [&](const std::vector<Expr>& d) -> Expr { return fold(d); });
  builder.define_rest();
  return builder.finish();
}

}  // namespace sylvite
