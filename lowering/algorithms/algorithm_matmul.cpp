#include "base/error.h"
#include "lowering/algorithms/algorithm_builder.h"
#include "lowering/algorithms/algorithm_forms.h"
#include "lowering/algorithms/dot_product.h"
#include "lowering/algorithms/halide_types.h"
#include "lowering/algorithms/problems.h"
#include "lowering/algorithms/row_quantization.h"

// Forms matmul_panels (b is a weight, packed when the program is loaded) and matmul_activations (b is packed,
// or read as it lies, by the kernel). With v0 the product:
//   v0_a(d0, d1, d2...)            the left operand: k, row, batch dims of the product, innermost first; with
//                                  the parameter `slab`, v0_a(d0, d1, s, d2...): k goes on every `slab`
//                                  elements in s, so that all rows of a slab lie behind each other
//   v0_panels(v, k, p, d2...)      matmul_activations only: the right operand in panels
//   v0_fold(v, p, d1, d2...)       the accumulator: v is the column in a panel, p the panel, d1 the row. Its
//                                  update folds over r0 = k; for bf16 over r0, neighbours in k that are
//                                  multiplied at once, and r1, the pairs of them (of a slab; r2: the slabs)
//   v0(d0, d1...)                  v0_fold(d0 % 16, d0 / 16, ...): split d0 by 16 to make it dense
// For bf16 v0_panels and packed weights have the pairs innermost: (u, v, k / 2, p, d2...).
// 8-bit integers have weights of fours, (u, v, k / 4, p), v0_fold adds i32, and v0_a is u8; with the parameter `widen`,
// for processors that multiply no bytes, pairs, and v0_a is i16. A quantized_matmul also has:
//   v0_lanes(v, s, d1, d2...)      extreme keys of a row's lanes: of the largest elements (s = 0), of the
//                                  largest negated ones; folds over r0
//   v0_extremes(s, d1, d2...)      the row's; folds over r0 = the lanes
//   v0_inverse, v0_scale, v0_zero  (d1, d2...) what they make of the row

namespace sylvite {
namespace {

using Halide::Expr;
using Halide::Func;
using Halide::Var;

MatmulProblem require_matmul(const Kernel& kernel, const Form& form, bool weight) {
  Reading<MatmulProblem> reading = read_matmul(kernel);
  if (form.parameters.contains("widen")) reading.problem.widen_bytes();
  std::string refusal = reading.refusal;
  if (refusal.empty() && weight && reading.problem.weight == no_value)
    refusal = "its right operand is no weight";
  if (!refusal.empty()) throw UnsupportedError("a panel matmul cannot take the kernel: {}", refusal);
  return reading.problem;
}

Packing panel_packing(const MatmulProblem& problem) {
  const int pair = problem.pair();
  if (problem.weight_is_transposed)
    return pair > 1 ? Packing{{panel_width, pair}, {0, 2, 1, 3}} : Packing{{panel_width, 1}, {0, 2, 1}};
  return pair > 1 ? Packing{{pair, panel_width}, {2, 0, 3, 1}} : Packing{{1, panel_width}, {2, 0, 3}};
}

std::vector<Packing> panel_packings(const Kernel& kernel, const MatmulProblem& problem) {
  std::vector<Packing> packings = layout_packings(kernel);
  for (std::size_t i = 0; i < packings.size(); ++i) {
    if (kernel.body.inputs[i] != problem.weight) continue;
    packings[i] = panel_packing(problem);
  }
  return packings;
}

/// The vars of the product's batch dims, innermost first.
std::vector<Var> batch_vars(const AlgorithmBuilder& builder, const MatmulProblem& problem) {
  std::vector<Var> vars = AlgorithmBuilder::vars_of(builder.type(problem.anchor));
  vars.erase(vars.begin(), vars.begin() + 2);
  return vars;
}

std::vector<Var> joined(std::vector<Var> first, const std::vector<Var>& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

template <typename Inner>
std::vector<Expr> arguments(const Inner& inner, const std::vector<Var>& rest) {
  std::vector<Expr> result(inner.begin(), inner.end());
  result.insert(result.end(), rest.begin(), rest.end());
  return result;
}

/// Element (row, column) of an operand in the batch that `batch` (innermost first) says, broadcast as numpy
/// does.
Expr operand(const AlgorithmBuilder& builder, ValueId id, const std::vector<Var>& batch, const Expr& row,
             const Expr& column) {
  const Shape& shape = builder.type(id).shape;
  Coordinates at;
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) {
    const Var& outer = batch.at(shape.size() - 3 - i);
    at.emplace_back(shape[i] == 1 ? Expr(0) : Expr(outer));
  }
  at.emplace_back(row);
  at.emplace_back(column);
  return builder.read_stored(id, at);
}

/// The arguments of panels for element k of column v of panel p.
std::vector<Expr> panel_arguments(const MatmulProblem& problem, const Expr& k, const Expr& v, const Expr& p) {
  const int pair = problem.pair();
  return pair > 1 ? std::vector<Expr>{k % pair, v, k / pair, p} : std::vector<Expr>{v, k, p};
}

/// The transpose is part of the packing: b itself, should anything read it.
void define_transposed_weight(AlgorithmBuilder& builder, const MatmulProblem& problem) {
  builder.define(problem.b, [&](const Coordinates& at) -> Expr {
    const Expr column = at[1].full;
    return builder.parameter(problem.weight)(
        panel_arguments(problem, at[0].full, column % panel_width, column / panel_width));
  });
}

Expr last_extent(const AlgorithmBuilder& builder, ValueId id) {
  return builder.extent(builder.type(id).shape.back());
}

Expr row_count(const AlgorithmBuilder& builder, ValueId id) {
  return builder.extent(*(builder.type(id).shape.rbegin() + 1));
}

Func define_panels(AlgorithmBuilder& builder, const MatmulProblem& problem) {
  const std::vector<Var> batch = batch_vars(builder, problem);
  const Var u("u");
  const Var v("v");
  const Var k("k");
  const Var p("p");
  Expr column = p * panel_width + v;
  if (problem.n % panel_width != 0) column = Halide::min(column, last_extent(builder, problem.anchor) - 1);
  Func panels = builder.stage(builder.name(problem.anchor) + "_panels");
  const int pair = problem.pair();
  const Expr row = pair > 1 ? k * pair + u : Expr(k);
  const Expr element = to_storage(operand(builder, problem.b, batch, row, column), problem.element);
  panels(joined(pair > 1 ? std::vector<Var>{u, v, k, p} : std::vector<Var>{v, k, p}, batch)) = element;
  return panels;
}

/// The extremes of each row of the left operand, first in lanes; what they make of it.
RowQuantization define_row_quantization(AlgorithmBuilder& builder, const MatmulProblem& problem) {
  const std::vector<Var> batch = batch_vars(builder, problem);
  const Var d1("d1");
  const Var s("s");
  const Var v("v");
  const int lanes = to_int(quantized_lanes(problem.k));
  const std::string& name = builder.name(problem.anchor);
  const Halide::RDom steps = reduction_domain({problem.k / lanes});
  const Expr key = extreme_key(operand(builder, problem.a, batch, d1, steps[0] * lanes + v), s == 1);
  const Expr nothing = Halide::Internal::make_zero(key.type());
  Func partial = builder.stage(name + "_lanes");
  const std::vector<Var> at = joined({v, s, d1}, batch);
  partial(at) = nothing;
  partial(at) = Halide::max(partial(at), key);
  const Halide::RDom all = reduction_domain({lanes});
  Func extremes = builder.stage(name + "_extremes");
  const std::vector<Var> rows = joined({s, d1}, batch);
  extremes(rows) = nothing;
  extremes(rows) = Halide::max(extremes(rows), partial(arguments(std::vector<Expr>{all[0], s, d1}, batch)));
  RowQuantization row = row_quantization(extremes(arguments(std::vector<Expr>{0, d1}, batch)),
                                         extremes(arguments(std::vector<Expr>{1, d1}, batch)));
  const auto stored = [&](const char* suffix, Expr& value) {
    Func stage = builder.stage(name + suffix);
    stage(joined({d1}, batch)) = value;
    value = stage(joined({d1}, batch));
  };
  stored("_inverse", row.inverse);
  stored("_scale", row.scale);
  stored("_zero", row.zero);
  return row;
}

/// How the fold goes through k, in slabs of `slab` elements unless that is 0.
struct FoldPlaces {
  std::vector<Expr> left;  ///< arguments of v0_a ahead of the batch's, for row `d1`
  PairedFold fold;
  Expr group;  ///< pairs so far
};

FoldPlaces fold_places(const AlgorithmBuilder& builder, const MatmulProblem& problem, std::int64_t slab,
                       const Var& d1) {
  if (problem.k == open_extent) {
    PairedFold fold;
    fold.domain = open_reduction_domain({last_extent(builder, problem.a)});
    fold.outer = fold.domain[0];
    fold.whole = fold.outer;
    return {{fold.whole, d1}, fold, fold.outer};
  }
  if (slab == 0) {
    const PairedFold fold = paired_fold(problem.k, problem.pair());
    return {{fold.whole, d1}, fold, fold.outer};
  }
  if (problem.k % slab != 0 || slab % problem.pair() != 0)
    throw UnsupportedError("slabs of {} elements do not divide k = {}", slab, problem.k);
  const PairedFold fold = paired_fold(slab, problem.pair(), std::vector<std::int64_t>{problem.k / slab});
  const Halide::RVar number = fold.domain[problem.pair() > 1 ? 2 : 1];
  return {{fold.whole, d1, number}, fold, fold.outer + number * to_int(slab / problem.pair())};
}

/// What is stored of an element of a.
Expr stored_left(const Expr& element, const MatmulProblem& problem, const RowQuantization& row) {
  const DType type = left_element(problem.element);
  if (problem.scales == no_value) return to_storage(element, type);
  const Expr wide = element.type().is_bfloat() ? from_storage(element, DType::bf16) : element;
  return to_storage(quantized_steps(wide, row), type);
}

Algorithm build_matmul(const Kernel& kernel, const Form& form, bool weight) {
  const MatmulProblem problem = require_matmul(kernel, form, weight);
  const auto slab_size = form.parameters.find("slab");
  const std::int64_t slab = slab_size == form.parameters.end() ? 0 : slab_size->second;
  AlgorithmBuilder builder(kernel, weight ? panel_packings(kernel, problem) : layout_packings(kernel));
  if (weight && problem.weight_is_transposed) define_transposed_weight(builder, problem);
  builder.define_before(kernel.anchor);
  const std::string& name = builder.name(problem.anchor);
  const std::vector<Var> batch = batch_vars(builder, problem);
  const Var d0("d0");
  const Var d1("d1");
  const Var v("v");
  const Var p("p");
  const bool is_quantized = problem.scales != no_value;
  const RowQuantization row = is_quantized ? define_row_quantization(builder, problem) : RowQuantization();
  Func left = builder.stage(name + "_a");
  const Var number("s");
  // Slices of a run's rows are made for whole tiles: the last row stands for those behind it.
  const Expr row_of_a =
      slab > 0 && problem.has_open_m ? Halide::min(d1, row_count(builder, problem.anchor) - 1) : Expr(d1);
  const Expr element =
      operand(builder, problem.a, batch, row_of_a, slab == 0 ? Expr(d0) : number * to_int(slab) + d0);
  left(joined(slab == 0 ? std::vector<Var>{d0, d1} : std::vector<Var>{d0, d1, number}, batch)) =
      stored_left(element, problem, row);
  const FoldPlaces k = fold_places(builder, problem, slab, d1);
  const std::vector<Expr> panel_at = joined_pair(k.fold, {v, k.group, p});
  const Expr right = weight ? Expr(builder.parameter(problem.weight)(panel_at))
                            : define_panels(builder, problem)(arguments(panel_at, batch));
  Func fold = builder.stage(name + "_fold");
  const std::vector<Var> at = joined({v, p, d1}, batch);
  const Expr product = stored_product(left(arguments(k.left, batch)), right);
  fold(at) = Halide::Internal::make_zero(product.type());
  fold(at) += product;
  builder.define(problem.anchor, [&](const Coordinates& place) -> Expr {
    Expr sum = fold(arguments(std::vector<Expr>{d0 % panel_width, d0 / panel_width, d1}, batch));
    if (!is_quantized) return sum;
    return dequantized_sum(sum, row, builder.read(problem.scales, {place.back()}),
                           builder.read(problem.sums, {place.back()}));
  });
  builder.define_rest();
  return builder.finish();
}

}  // namespace

std::vector<Packing> matmul_panels_packings(const Kernel& kernel, const Form& form) {
  return panel_packings(kernel, require_matmul(kernel, form, true));
}
Algorithm build_matmul_panels(const Kernel& kernel, const Form& form) {
  return build_matmul(kernel, form, true);
}
Algorithm build_matmul_activations(const Kernel& kernel, const Form& form) {
  return build_matmul(kernel, form, false);
}

}  // namespace sylvite
