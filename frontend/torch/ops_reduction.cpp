// Reductions, scans and orderings.

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/ops/top_k_ties.h"
#include "frontend/torch/open_sizes.h"
#include "frontend/torch/torch_ops.h"

namespace sylvite {
namespace {

struct Reduction {
  Sym x;
  std::vector<std::int64_t> axes;
  bool keepdims;
};

/// No axes mean all of them. Of a tensor of rank 0, axis 0 is nothing.
Reduction read_reduction(TorchContext& c, Sym x) {
  const Dims given = c.integers("dim", Dims{});
  const bool keepdims = c.flag("keepdim", false);
  if (x.rank() == 0) return {x, {}, keepdims};
  return {x, given.empty() ? all_axes(x.rank()) : normalize_axes(given, x.rank()), keepdims};
}

Sym reduced(Op op, const Reduction& r) {
  return r.x.rank() == 0 ? r.x : reduce(op, r.x, r.axes, r.keepdims);
}

/// Narrow floats are summed in f32, as torch does.
DType sum_dtype(DType result) {
  return is_half(result) ? DType::f32 : result;
}

template <Op op>
void fold(TorchContext& c) {
  c.ignore("dtype");
  const Reduction r = read_reduction(c, c.operand("self", sum_dtype(c.result_dtype())));
  c.output(cast(reduced(op, r), c.result_dtype()));
}

void mean(TorchContext& c) {
  c.ignore("dtype");
  const Reduction r = read_reduction(c, c.operand("self", sum_dtype(c.result_dtype())));
  c.output(cast(mean_along(c, "self", r.x, r.axes, r.keepdims), c.result_dtype()));
}

/// Booleans are taken as 0 and 1.
template <Op op>
void extreme(TorchContext& c) {
  const Sym x = c.tensor("self");
  const Reduction r = read_reduction(c, x.dtype() == DType::boolean ? cast(x, DType::u8) : x);
  c.output(cast(reduced(op, r), x.dtype()));
}

template <Op op>
void any_all(TorchContext& c) {
  const Reduction r = read_reduction(c, cast(c.operand("self", DType::boolean), DType::u8));
  c.output(cast(reduced(op, r), DType::boolean));
}

Sym arg_of(Op op, Sym x, std::int64_t axis, bool keepdims) {
  return x.builder().add(op, {x}, {{"axis", axis}, {"keepdims", std::int64_t{keepdims}}});
}

template <Op op>
void arg_extreme(TorchContext& c) {
  Sym x = c.tensor("self");
  const bool keepdims = c.flag("keepdim", false);
  const bool is_whole = !c.has("dim");
  if (is_whole || x.rank() == 0) x = reshape(x, {x.size()});
  const int axis = is_whole ? 0 : normalize_axis(c.integer("dim"), x.rank());
  c.output(reshape(arg_of(op, x, axis, keepdims), c.result_dims()));
}

/// Values and their first positions along one axis.
template <Op op, Op arg>
void extreme_along(TorchContext& c) {
  const Sym self = c.tensor("self");
  Sym x = self.dtype() == DType::boolean ? cast(self, DType::u8) : self;
  if (x.rank() == 0) x = reshape(x, {1});
  const std::int64_t axis = normalize_axis(c.integer("dim"), x.rank());
  const bool keepdims = c.flag("keepdim", false);
  const Dims dims = c.result_dims();
  c.outputs({reshape(cast(reduce(op, x, {axis}, keepdims), self.dtype()), dims),
             reshape(arg_of(arg, x, axis, keepdims), dims)});
}

/// The sum of squared deviations over count - correction.
Sym variance_of(TorchContext& c, const Reduction& r, double correction) {
  const Sym centered = r.x - mean_along(c, "self", r.x, r.axes, true);
  const double divisor = std::max(static_cast<double>(count_along(r.x, r.axes)) - correction, 0.0);
  const Sym sum = reduced(Op::reduce_sum, {centered * centered, r.axes, r.keepdims});
  return cast(sum / size_scalar(c.builder(), sum.dtype(), divisor, c.has_open_axis("self", r.axes)),
              c.result_dtype());
}

double read_correction(TorchContext& c) {
  return c.real("correction", 1);
}

void variance(TorchContext& c) {
  const Reduction r = read_reduction(c, c.operand("self", sum_dtype(c.result_dtype())));
  c.output(variance_of(c, r, read_correction(c)));
}

void variance_unbiased(TorchContext& c) {
  const Reduction r = read_reduction(c, c.operand("self", sum_dtype(c.result_dtype())));
  c.output(variance_of(c, r, c.flag("unbiased", true) ? 1 : 0));
}

void variance_and_mean(TorchContext& c) {
  const Reduction r = read_reduction(c, c.operand("self", sum_dtype(c.result_dtype())));
  const Sym mean_value = mean_along(c, "self", r.x, r.axes, r.keepdims);
  c.outputs({variance_of(c, r, read_correction(c)), cast(mean_value, c.result_dtype())});
}

template <Op op>
void scan(TorchContext& c) {
  c.ignore("dtype");
  const Sym x = c.operand("self", c.result_dtype());
  const std::int64_t given = c.integer("dim");
  if (x.rank() == 0) return c.output(x);
  c.output(c.builder().add(op, {x}, {{"axis", std::int64_t{normalize_axis(given, x.rank())}}}));
}

std::vector<Sym> ordered(TorchContext& c, std::int64_t k, bool is_largest, TopKTies ties = first_of_equals) {
  Sym x = c.tensor("self");
  const std::int64_t given = c.integer("dim", -1);
  if (x.rank() == 0) return {x, c.builder().filled(DType::i64, {}, 0)};
  const std::int64_t axis = normalize_axis(given, x.rank());
  if (k < 0) k = x.dim(static_cast<int>(axis));
  const DType dtype = x.dtype();
  if (dtype == DType::boolean) x = cast(x, DType::u8);
  std::vector<Sym> results = c.builder().add_all(Op::top_k, {x},
                                                 {{"axis", axis},
                                                  {"k", Dims{k}},
                                                  {"largest", std::int64_t{is_largest}},
                                                  {"ties", static_cast<std::int64_t>(ties)}});
  results[0] = cast(results[0], dtype);
  return results;
}

void top_k(TorchContext& c) {
  const std::int64_t k = c.integer("k");
  if (k < 0) throw ModelError("k is {}", k);
  const TopKTies ties = c.flag("sorted", true) ? as_library : as_library_unsorted;
  c.outputs(ordered(c, k, c.flag("largest", true), ties));
}

/// Of equal elements the first comes first, so it is stable.
void sort(TorchContext& c) {
  c.ignore("stable");
  c.outputs(ordered(c, -1, c.flag("descending", false)));
}

void arg_sort(TorchContext& c) {
  c.ignore("stable");
  c.output(ordered(c, -1, c.flag("descending", false))[1]);
}

/// The k-th smallest and where it is. Without elements in the line there is none.
std::vector<Sym> smallest(TorchContext& c, std::int64_t k, TopKTies ties) {
  const Sym x = c.tensor("self");
  const bool keepdims = c.flag("keepdim", false);
  std::vector<Sym> results = ordered(c, k, false, ties);
  const std::int64_t axis = x.rank() == 0 ? 0 : normalize_axis(c.integer("dim", -1), x.rank());
  for (Sym& result : results) {
    if (x.rank() == 0) continue;
    result = slice(result, static_cast<int>(axis), k - 1, k);
    if (!keepdims) result = squeeze(result, {axis});
  }
  return results;
}

void kth_value(TorchContext& c) {
  c.outputs(smallest(c, c.integer("k"), as_kth_value));
}

/// The lower of two in the middle, where a stable sort leaves it, as in torch; a line with a NaN has that.
void median_along(TorchContext& c) {
  const Sym x = c.tensor("self");
  const std::int64_t axis = x.rank() == 0 ? 0 : normalize_axis(c.integer("dim", -1), x.rank());
  const std::int64_t extent = x.rank() == 0 ? 1 : x.dim(static_cast<int>(axis));
  if (extent == 0) throw ModelError("there is no median of nothing");
  std::vector<Sym> results = smallest(c, (extent + 1) / 2, first_of_equals);
  if (is_float(x.dtype()) && x.rank() > 0) {
    const bool keepdims = c.flag("keepdim", false);
    const Sym nans = cast(apply(Op::is_nan, x), DType::u8);
    const Sym has_nan = cast(reduce(Op::reduce_max, nans, {axis}, keepdims), DType::boolean);
    results = {where(has_nan, std::numeric_limits<double>::quiet_NaN(), results[0]),
               where(has_nan, arg_of(Op::arg_max, nans, axis, keepdims), results[1])};
  }
  c.outputs(std::move(results));
}

/// What is so many places ahead along the axis; at the first places zeros.
Sym ahead_by(Sym x, int axis, std::int64_t places) {
  Dims low(static_cast<std::size_t>(x.rank())), high = low;
  low[static_cast<std::size_t>(axis)] = places;
  return pad(slice(x, axis, 0, x.dim(axis) - places), low, high);
}

/// Whether something is so many places ahead: a line that lies along the axis.
Sym has_ahead(Sym x, int axis, std::int64_t places) {
  Dims dims(static_cast<std::size_t>(x.rank()), 1);
  dims[static_cast<std::size_t>(axis)] = x.dim(axis);
  return apply(Op::greater_equal, x.builder().iota(DType::i64, dims, axis), static_cast<double>(places));
}

/// The extreme so far along the axis, and its last position: of 1, 2, 4 and so on elements up to each.
template <Op is_taken>
void running(TorchContext& c) {
  const Sym self = c.tensor("self");
  const std::int64_t given = c.integer("dim");
  if (self.rank() == 0) return c.outputs({self, c.builder().filled(DType::i64, {}, 0)});
  Sym values = self.dtype() == DType::boolean ? cast(self, DType::u8) : self;
  const int axis = normalize_axis(given, values.rank());
  Sym places = c.builder().iota(DType::i64, values.dims(), axis);
  for (std::int64_t step = 1; step < values.dim(axis); step *= 2) {
    const Sym before = ahead_by(values, axis, step);
    Sym keeps = apply(is_taken, values, before);
    if (is_float(values.dtype())) keeps = apply(Op::logical_or, keeps, apply(Op::is_nan, values));
    keeps = apply(Op::logical_or, keeps, apply(Op::logical_not, has_ahead(values, axis, step)));
    places = where(keeps, places, ahead_by(places, axis, step));
    values = where(keeps, values, before);
  }
  c.outputs({cast(values, self.dtype()), places});
}

/// log(exp(a) + exp(b)). Equal ones, which may be infinite, have no difference.
Sym log_add_exp(Sym a, Sym b) {
  const Sym apart = where(apply(Op::equal, a, b), 0.0, apply(Op::abs, a - b));
  return apply(Op::maximum, a, b) + apply(Op::softplus, apply(Op::neg, apart));
}

/// The logarithm of the sum so far of exponentials: of 1, 2, 4 and so on elements up to each.
void log_cumsum_exp(TorchContext& c) {
  const Sym x = c.tensor("self");
  const std::int64_t given = c.integer("dim");
  if (x.rank() == 0) return c.output(x);
  const int axis = normalize_axis(given, x.rank());
  Sym sums = cast(x, sum_dtype(x.dtype()));
  for (std::int64_t step = 1; step < x.dim(axis); step *= 2)
    sums = where(has_ahead(sums, axis, step), log_add_exp(sums, ahead_by(sums, axis, step)), sums);
  c.output(cast(sums, x.dtype()));
}

/// How many elements fall into each of `bins` ranges from min to max, the last with its end.
void histogram(TorchContext& c) {
  const Sym x = reshape(c.tensor("self"), {c.tensor("self").size(), 1});
  const auto bins = static_cast<double>(c.integer("bins", 100));
  const double low = c.real("min", 0), high = c.real("max", 0);
  if (!(low < high) || !(bins >= 1 && bins <= 65'536))
    throw UnsupportedError("a histogram whose range is that of the data is not served");
  const Sym wide = cast(x, is_float(x.dtype()) ? x.dtype() : DType::f32);
  const Sym is_inside =
      apply(Op::logical_and, apply(Op::greater_equal, wide, low), apply(Op::less_equal, wide, high));
  const Sym bin = apply(Op::minimum, apply(Op::floor, (wide - low) * (bins / (high - low))), bins - 1);
  const Sym number = c.builder().iota(wide.dtype(), {1, static_cast<std::int64_t>(bins)}, 1);
  const Sym is_hit = apply(Op::logical_and, is_inside, apply(Op::equal, bin, number));
  c.output(cast(reduce(Op::reduce_sum, cast(is_hit, DType::f32), {0}, false), c.result_dtype()));
}

constexpr std::string_view whole = "self dim keepdim";
constexpr std::string_view summed = "self dim keepdim dtype";
constexpr std::string_view corrected = "self dim correction keepdim";

const TorchOp reduction_rows[] = {
    {"aten.all.default", whole, any_all<Op::reduce_min>},
    {"aten.all.dim", whole, any_all<Op::reduce_min>},
    {"aten.all.dims", whole, any_all<Op::reduce_min>},
    {"aten.amax.default", whole, extreme<Op::reduce_max>},
    {"aten.amin.default", whole, extreme<Op::reduce_min>},
    {"aten.any.default", whole, any_all<Op::reduce_max>},
    {"aten.any.dim", whole, any_all<Op::reduce_max>},
    {"aten.any.dims", whole, any_all<Op::reduce_max>},
    {"aten.argmax.default", whole, arg_extreme<Op::arg_max>},
    {"aten.argmin.default", whole, arg_extreme<Op::arg_min>},
    {"aten.argsort.default", "self dim descending", arg_sort},
    {"aten.argsort.stable", "self stable dim descending", arg_sort},
    {"aten.cummax.default", "self dim", running<Op::greater_equal>},
    {"aten.cummin.default", "self dim", running<Op::less_equal>},
    {"aten.cumprod.default", "self dim dtype", scan<Op::cumprod>},
    {"aten.cumsum.default", "self dim dtype", scan<Op::cumsum>},
    {"aten.histc.default", "self bins min max", histogram},
    {"aten.kthvalue.default", "self k dim keepdim", kth_value},
    {"aten.logcumsumexp.default", "self dim", log_cumsum_exp},
    {"aten.max.default", whole, extreme<Op::reduce_max>},
    {"aten.max.dim", whole, extreme_along<Op::reduce_max, Op::arg_max>},
    {"aten.mean.default", "self dtype dim keepdim", mean},
    {"aten.mean.dim", summed, mean},
    {"aten.median.dim", whole, median_along},
    {"aten.min.default", whole, extreme<Op::reduce_min>},
    {"aten.min.dim", whole, extreme_along<Op::reduce_min, Op::arg_min>},
    {"aten.prod.default", "self dtype dim keepdim", fold<Op::reduce_prod>},
    {"aten.prod.dim_int", summed, fold<Op::reduce_prod>},
    {"aten.sort.default", "self dim descending stable", sort},
    {"aten.sort.stable", "self stable dim descending", sort},
    {"aten.sum.default", "self dtype dim keepdim", fold<Op::reduce_sum>},
    {"aten.sum.dim_IntList", summed, fold<Op::reduce_sum>},
    {"aten.topk.default", "self k dim largest sorted", top_k},
    {"aten.var.correction", corrected, variance},
    {"aten.var.dim", "self dim unbiased keepdim", variance_unbiased},
    {"aten.var_mean.correction", corrected, variance_and_mean},
};

}  // namespace

std::span<const TorchOp> torch_reduction_ops() {
  return reduction_rows;
}

}  // namespace sylvite
