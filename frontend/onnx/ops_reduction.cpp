// Reductions over axes, and losses.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "frontend/onnx/ops.h"

namespace sylvite {
namespace {

struct Reduction {
  Sym x;
  std::vector<std::int64_t> axes;
  bool keepdims;
};

/// Axes are an attribute up to opset 12 (ReduceSum) or 17 (the others), an input later; none means all, or
/// nothing when noop_with_empty_axes says so.
Reduction read_reduction(ImportContext& c) {
  const Sym x = c.input(0);
  Reduction reduction{x, {}, c.integer("keepdims", 1) != 0};
  const auto axes = c.integers_from(1, "axes");
  if (axes && !axes->empty())
    reduction.axes = normalize_axes(*axes, x.rank());
  else if (c.integer("noop_with_empty_axes", 0) == 0)
    reduction.axes = all_axes(x.rank());
  return reduction;
}

Sym sum_of(const Reduction& r, Sym x) {
  return reduce(Op::reduce_sum, x, r.axes, r.keepdims);
}

template <Op op>
void reduce_plain(ImportContext& c) {
  const Reduction r = read_reduction(c);
  c.output(reduce(op, r.x, r.axes, r.keepdims));
}

/// Booleans have no order in the core operations; as bytes they do.
template <Op op>
void reduce_extreme(ImportContext& c) {
  const Reduction r = read_reduction(c);
  if (r.x.dtype() != DType::boolean) return c.output(reduce(op, r.x, r.axes, r.keepdims));
  c.output(cast(reduce(op, cast(r.x, DType::u8), r.axes, r.keepdims), DType::boolean));
}

/// Of no elements ONNX leaves the mean open; it is 0 here, as in ONNX Runtime and in torch's embedding bags.
void reduce_mean_op(ImportContext& c) {
  const Reduction r = read_reduction(c);
  const bool is_of_nothing = std::any_of(
      r.axes.begin(), r.axes.end(), [&](std::int64_t axis) { return r.x.dim(static_cast<int>(axis)) == 0; });
  if (is_of_nothing) return c.output(sum_of(r, r.x));
  c.output(reduce_mean(r.x, r.axes, r.keepdims));
}

void reduce_l1(ImportContext& c) {
  const Reduction r = read_reduction(c);
  c.output(sum_of(r, apply(Op::abs, r.x)));
}

Sym as_floats(Sym x) {
  return is_float(x.dtype()) ? x : cast(x, DType::f64);
}

void reduce_l2(ImportContext& c) {
  const Reduction r = read_reduction(c);
  const Sym x = as_floats(r.x);
  c.output(cast(apply(Op::sqrt, sum_of(r, x * x)), r.x.dtype()));
}

void reduce_sum_square(ImportContext& c) {
  const Reduction r = read_reduction(c);
  c.output(sum_of(r, r.x * r.x));
}

void reduce_log_sum(ImportContext& c) {
  const Reduction r = read_reduction(c);
  c.output(cast(apply(Op::log, sum_of(r, as_floats(r.x))), r.x.dtype()));
}

/// Shifted by the maximum so that exp does not overflow; an infinite maximum shifts by nothing.
void reduce_log_sum_exp(ImportContext& c) {
  const Reduction r = read_reduction(c);
  const Sym x = as_floats(r.x);
  const double largest = x.dtype() == DType::f16 ? 65504 : 3.0e38;
  Sym shift = reduce(Op::reduce_max, x, r.axes, true);
  shift = where(apply(Op::less_equal, apply(Op::abs, shift), largest), shift, 0.0);
  Sym sum = apply(Op::log, reduce(Op::reduce_sum, apply(Op::exp, x - shift), r.axes, true)) + shift;
  sum = cast(sum, r.x.dtype());
  c.output(r.keepdims ? sum : squeeze(sum, r.axes));
}

/// The loss of each element, and the weighted mean or sum over all, as `reduction` asks. `log_probability` is
/// [N, C, ...], `labels` [N, ...], `weight` [C] or absent.
Sym negative_log_likelihood(ImportContext& c, Sym log_probability, Sym labels, Sym weight) {
  const DType dtype = log_probability.dtype();
  const Dims label_dims = labels.dims();
  labels = cast(labels, DType::i64);
  Sym kept;
  if (c.has_attribute("ignore_index")) {
    const Sym ignored = c.builder().constant(Tensor::scalar_i64(c.integer("ignore_index", 0)));
    const Sym is_ignored = apply(Op::equal, labels, ignored);
    kept = cast(apply(Op::logical_not, is_ignored), dtype);
    labels = where(is_ignored, 0.0, labels);
  }
  const Sym picked = c.builder().add(Op::gather_elements, {log_probability, unsqueeze(labels, {1})},
                                     {{"axis", std::int64_t{1}}});
  Sym loss = -reshape(picked, label_dims);
  Sym weights = weight ? gather(weight, labels, 0) : kept;
  if (weight && kept) weights = weights * kept;
  if (weights) loss = loss * weights;
  const std::string reduction = c.string("reduction", "mean");
  if (reduction == "none") return loss;
  const Sym total = reduce(Op::reduce_sum, loss, all_axes(loss.rank()), false);
  if (reduction == "sum") return total;
  if (!weights) return total / static_cast<double>(loss.size());
  return total / reduce(Op::reduce_sum, weights, all_axes(weights.rank()), false);
}

void nll_loss(ImportContext& c) {
  c.output(negative_log_likelihood(c, c.input(0), c.input(1), c.optional(2)));
}

void softmax_cross_entropy(ImportContext& c) {
  const Sym log_probability = c.builder().add(Op::log_softmax, {c.input(0)}, {{"axis", std::int64_t{1}}});
  c.output(0, negative_log_likelihood(c, log_probability, c.input(1), c.optional(2)));
  c.output(1, log_probability);
}

const OnnxOp reduction_rows[] = {
    {"NegativeLogLikelihoodLoss", 12, nll_loss},
    {"ReduceL1", 1, reduce_l1},
    {"ReduceL2", 1, reduce_l2},
    {"ReduceLogSum", 1, reduce_log_sum},
    {"ReduceLogSumExp", 1, reduce_log_sum_exp},
    {"ReduceMax", 1, reduce_extreme<Op::reduce_max>},
    {"ReduceMean", 1, reduce_mean_op},
    {"ReduceMin", 1, reduce_extreme<Op::reduce_min>},
    {"ReduceProd", 1, reduce_plain<Op::reduce_prod>},
    {"ReduceSum", 1, reduce_plain<Op::reduce_sum>},
    {"ReduceSumSquare", 1, reduce_sum_square},
    {"SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy},
};

}  // namespace

std::span<const OnnxOp> onnx_reduction_ops() {
  return reduction_rows;
}

}  // namespace sylvite
