#include <functional>

#include "base/error.h"
#include "lowering/algorithms/algorithm_builder.h"
#include "lowering/algorithms/algorithm_forms.h"
#include "lowering/algorithms/conv_parts.h"
#include "lowering/algorithms/dot_product.h"
#include "lowering/algorithms/halide_types.h"

// Forms conv_blocked and depthwise_blocked: 2-D convolution into a channel-blocked output. With v0 the
// convolution:
//   v0_in(d0, d1, d2, d3, d4)   the input with its zero border: channel in block, x, y, block, batch; x and y
//                               are the input's own coordinates, so the border starts below 0
//   v0_fold(d0, d1, d2, d3, d4) the accumulator over v0's storage coordinates. Its update folds over r0
//                               (channel in a fold block, which divides the channels), r1 (window x), r2
//                               (window y), r3 (fold block); for bf16, and i16 and i8 of which `widen` makes i16, as in
//                               algorithm_matmul.cpp, over r0 (channel in pair), r1 (pair in
//                               fold block), r2 to r4 as r1 to r3; depthwise: r0 (window x), r1 (window y).
//                               With groups r3 counts from the block's first group (grouped_filter.h)
//   v0_filter(d0, d1, ...)      only of a filter that is no weight of its own: the same numbers as a packed one, in
//                               the same places
//   v0                          v0_fold plus the bias
// Form conv_rows: a convolution v0 whose result, after pointwise work, a depthwise convolution vN reads: the
// stages of both forms. v0 and the work on it are defined everywhere (beyond the border with the input's
// nearest elements), vN_in(d0, d1, d2, d3, d4) is zero there: schedules compute rows of it without edges.
// Weights are packed by blocks of output channels, zero-padded, so that both are read without % or /.

namespace sylvite {
namespace {

using Halide::Expr;
using Halide::Func;
using Halide::Var;

ConvProblem require_conv(const Kernel& kernel, const Form& form, bool depthwise) {
  Reading<ConvProblem> reading = read_conv(kernel, depthwise);
  if (form.parameters.contains("widen")) reading.problem.widen_bytes();
  if (!reading.refusal.empty())
    throw UnsupportedError("a blocked convolution cannot take the kernel: {}", reading.refusal);
  return reading.problem;
}

Packing plain_packing(const ConvProblem& problem) {
  if (problem.depthwise) return {{problem.block, 1, 1, 1}, {0, 2, 4, 6, 1}};
  if (problem.pair() > 1) return {{problem.block, problem.pair(), 1, 1}, {0, 4, 6, 2, 1, 3}};
  if (problem.has_few_channels()) return {{problem.block, 1, 1, 1}, {0, 4, 6, 2, 1}};
  if (problem.fold_block == 1) return {{problem.block, 1, 1, 1}, {0, 2, 4, 6, 1}};
  return {{problem.block, problem.fold_block, 1, 1}, {0, 2, 4, 6, 3, 1}};
}

Packing filter_packing(const ConvProblem& problem) {
  Packing packing = plain_packing(problem);
  packing.filter_groups = problem.groups;
  return packing;
}

std::vector<Packing> blocked_packings(const Kernel& kernel, const ConvProblem& problem) {
  return conv_packings(kernel, problem, filter_packing(problem));
}

using Filter = std::function<Expr(const std::vector<Expr>&)>;  ///< reads a packed one, innermost first

/// Where along one dim of the filter an element of the packed one comes from, and whether it is no padding (undefined: it
/// never is).
struct FilterPlace {
  Coordinate at;
  Expr is_real;
};
FilterPlace filter_place(std::int64_t extent, std::int64_t factor, const Expr& outer, const Expr& inner) {
  if (factor == 1) return {outer, {}};
  FilterPlace place{Coordinate::split(outer, inner, to_int(factor), extent), {}};
  if (extent % factor != 0) place.is_real = outer * to_int(factor) + inner < to_int(extent);
  return place;
}

/// Input channel `spread` of those that output block `block` folds, for its output channel `output`: spread_filter.
FilterPlace spread_place(const GroupedChannels& channels, const Expr& block, const Expr& output,
                         const Expr& spread) {
  const int inputs = to_int(channels.inputs);
  const Expr own = output / to_int(channels.outputs) * inputs;
  const Expr at = group_steps(channels, block).first * to_int(channels.step()) + spread - own;
  return {Halide::clamp(at, 0, inputs - 1), at >= 0 && at < inputs};
}

/// Stage vN_filter: what packing would have made of the filter.
Func define_filter(AlgorithmBuilder& builder, const ConvProblem& p) {
  const Packing packing = filter_packing(p);
  const Dims dims = builder.type(p.weight).dims();
  std::vector<Var> vars;
  std::vector<Expr> parts(2 * dims.size());  // by the packing's numbers of axes
  for (auto axis = packing.order.rbegin(); axis != packing.order.rend(); ++axis) {
    vars.emplace_back(fmt::format("d{}", vars.size()));
    parts[static_cast<std::size_t>(*axis)] = vars.back();
  }
  Coordinates at;
  Expr inside;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const std::int64_t factor = packing.factors[d];
    const Expr& outer = parts[2 * d];
    const Expr& inner = parts[2 * d + 1];
    const Expr whole = factor == 1 ? outer : outer * to_int(factor) + inner;
    const bool is_spread = p.groups > 1 && d == 1;
    const FilterPlace place = is_spread ? spread_place(p.grouped(), parts[0], at[0].full, whole)
                                        : filter_place(dims[d], factor, outer, inner);
    at.push_back(place.at);
    if (place.is_real.defined()) inside = inside.defined() ? inside && place.is_real : place.is_real;
  }
  const DType element = p.depthwise ? builder.type(p.weight).dtype : p.element;
  const Expr value = to_storage(builder.read_rounded(p.weight, at), element);
  Func filter = builder.stage(builder.name(p.anchor) + "_filter");
  filter(vars) =
      inside.defined() ? Halide::select(inside, value, Halide::Internal::make_zero(value.type())) : value;
  return filter;
}

Filter packed_filter(AlgorithmBuilder& builder, const ConvProblem& p) {
  if (p.packs_weight)
    return [filter = define_filter(builder, p)](const std::vector<Expr>& at) -> Expr { return filter(at); };
  return [filter = builder.parameter(p.weight)](const std::vector<Expr>& at) -> Expr { return filter(at); };
}

void define_depthwise_fold(AlgorithmBuilder& builder, const ConvProblem& p, const Func& source, Func& fold) {
  const std::vector<Var> d = AlgorithmBuilder::vars_of(builder.type(p.anchor));
  const Halide::RDom r = reduction_domain({p.kernel_x, p.kernel_y});
  const Expr x = source_coordinate(d[1], r[0], p.stride_x, p.dilation_x, builder.extent(p.pad_left));
  const Expr y = source_coordinate(d[2], r[1], p.stride_y, p.dilation_y, builder.extent(p.pad_top));
  const Expr weight = packed_filter(builder, p)({d[0], r[0], r[1], 0, d[3]});
  fold(d) = 0.0F;
  fold(d) += from_storage(source(d[0], x, y, d[3], d[4]), p.element) *
             from_storage(weight, builder.type(p.weight).dtype);
}

void define_fold(AlgorithmBuilder& builder, const ConvProblem& p, const Func& source, Func& fold) {
  const std::vector<Var> d = AlgorithmBuilder::vars_of(builder.type(p.anchor));
  const Filter filter = packed_filter(builder, p);
  PairedFold c = paired_fold(p.fold_block, p.pair(), {p.kernel_x, p.kernel_y, p.fold_blocks()});
  const int window = p.pair() > 1 ? 2 : 1;  // the RVar of the window's x
  const Expr kx = c.domain[window];
  const Expr ky = c.domain[window + 1];
  const Expr block = c.domain[window + 2];
  const Expr x = source_coordinate(d[1], kx, p.stride_x, p.dilation_x, builder.extent(p.pad_left));
  const Expr y = source_coordinate(d[2], ky, p.stride_y, p.dilation_y, builder.extent(p.pad_top));
  const int ratio = p.source_block / p.fold_block;
  Expr read = block;
  if (p.groups > 1) {
    const GroupSteps steps = group_steps(p.grouped(), d[3]);
    read = steps.first + block;
    if (!p.grouped().are_apart()) {
      // The zeros of a block with fewer groups than others are left out; pairs cannot be.
      if (p.pair() == 1) c.domain.where(block < steps.count);
      read = Halide::min(read, to_int(p.channels / p.fold_block - 1));
    }
  }
  const Expr element = ratio == 1 ? source(c.whole, x, y, read, d[4])
                                  : source(read % ratio * p.fold_block + c.whole, x, y, read / ratio, d[4]);
  if (p.pair() > 1) {
    const int pairs = p.fold_block / p.pair();
    const Expr product =
        stored_product(element, filter({c.within, d[0], block * pairs + c.outer, kx, ky, d[3]}));
    fold(d) = Halide::Internal::make_zero(product.type());
    fold(d) += product;
    return;
  }
  fold(d) = 0.0F;
  if (p.has_few_channels())
    fold(d) += element * filter({d[0], c.whole, kx, ky, d[3]});
  else if (p.fold_block == 1)
    fold(d) += element * filter({d[0], kx, ky, block, d[3]});
  else
    fold(d) += element * filter({d[0], c.whole, kx, ky, block, d[3]});
}

/// Source, sum and result of one convolution, after what is before it.
void define_conv(AlgorithmBuilder& builder, const ConvProblem& problem, SourceBorder border) {
  builder.define_before(builder.body().value(problem.anchor).producer);
  const Func source = define_source(builder, problem, border);
  Func fold = builder.stage(builder.name(problem.anchor) + "_fold");
  (problem.depthwise ? define_depthwise_fold : define_fold)(builder, problem, source, fold);
  define_product(builder, problem, [&](const std::vector<Expr>& d) -> Expr { return fold(d); });
}

Algorithm build_conv(const Kernel& kernel, const Form& form, bool depthwise) {
  const ConvProblem problem = require_conv(kernel, form, depthwise);
  AlgorithmBuilder builder(kernel, blocked_packings(kernel, problem));
  define_conv(builder, problem, border_of(problem));
  builder.define_rest();
  return builder.finish();
}

ConvRowsProblem require_rows(const Kernel& kernel) {
  Reading<ConvRowsProblem> reading = read_conv_rows(kernel);
  if (!reading.refusal.empty())
    throw UnsupportedError("no convolution of rows can take the kernel: {}", reading.refusal);
  return reading.problem;
}

}  // namespace

std::vector<Packing> conv_rows_packings(const Kernel& kernel, const Form&) {
  const ConvRowsProblem problem = require_rows(kernel);
  std::vector<Packing> packings = blocked_packings(kernel, problem.first);
  const std::vector<Packing> of_second = blocked_packings(kernel, problem.second);
  for (std::size_t i = 0; i < packings.size(); ++i) {
    const ValueId id = kernel.body.inputs[i];
    if (id == problem.second.weight || id == problem.second.bias) packings[i] = of_second[i];
  }
  return packings;
}
Algorithm build_conv_rows(const Kernel& kernel, const Form& form) {
  const ConvRowsProblem problem = require_rows(kernel);
  AlgorithmBuilder builder(kernel, conv_rows_packings(kernel, form));
  define_conv(builder, problem.first, {.clamps = true, .zeros = problem.first.padded});
  define_conv(builder, problem.second, {.clamps = false, .zeros = problem.second.padded});
  builder.define_rest();
  return builder.finish();
}

std::vector<Packing> conv_blocked_packings(const Kernel& kernel, const Form& form) {
  return blocked_packings(kernel, require_conv(kernel, form, false));
}
Algorithm build_conv_blocked(const Kernel& kernel, const Form& form) {
  return build_conv(kernel, form, false);
}

std::vector<Packing> depthwise_blocked_packings(const Kernel& kernel, const Form& form) {
  return blocked_packings(kernel, require_conv(kernel, form, true));
}
Algorithm build_depthwise_blocked(const Kernel& kernel, const Form& form) {
  return build_conv(kernel, form, true);
}

}  // namespace sylvite
