#include <limits>

#include "base/error.h"
#include "lowering/algorithms/algorithm_builder.h"
#include "lowering/algorithms/algorithm_forms.h"
#include "lowering/algorithms/algorithm_nodes.h"
#include "lowering/algorithms/batch_vars.h"
#include "lowering/algorithms/coarse_math.h"
#include "lowering/algorithms/dot_product.h"
#include "lowering/algorithms/halide_math.h"
#include "lowering/algorithms/halide_types.h"
#include "lowering/algorithms/problems.h"

// Form attention_rows: attention whose scores never leave the cache. Positions and columns are split into
// panels of 16, (v, p), so that nothing needs % or /; positions beyond the last have probability 0. With v0
// the attention, and d1, d2.. the row and the batch dims of v0 itself, whatever transposes follow:
//   v0_keys(v, k, p, d2...)      k transposed into panels of 16 positions
//   v0_dot(v, p, d1, d2...)      folds over r0 = depth
//   v0_logit(v, p, d1, d2...)    scaled, capped and masked; -inf beyond the last position
//   v0_peaks(v, d1...)           folds the logits over r0 = p;    v0_max(d1...) then over v
//   v0_exp(v, p, d1...)          exp(logit - max)
//   v0_sums(v, d1...)            folds v0_exp over r0 = p;        v0_sum(d1...) then over v
//   v0_values(v, k, p, d2...)    v in panels of 16 columns; k is the position
//   v0_fold(v, p, d1, d2...)     folds v0_exp times v0_values over r0 = v and r1 = p of the position
//   v0(d0, d1...)                v0_fold(d0 % 16, d0 / 16, ...) / v0_sum
// For bf16 v0_keys and v0_values are (u, v, k / 2, p, d2...), u being the place in a pair of depths or of
// positions; v0_exp is rounded to bf16, its panels are even in number; v0_dot and v0_fold fold over r0 = u
// first, then over r1 and r2.

namespace sylvite {
namespace {

using Halide::Expr;
using Halide::Func;
using Halide::Var;

AttentionProblem require_attention(const Kernel& kernel) {
  Reading<AttentionProblem> reading = read_attention(kernel);
  if (!reading.refusal.empty())
    throw UnsupportedError("attention_rows cannot take the kernel: {}", reading.refusal);
  return reading.problem;
}

/// Builds the stages one after the other; each method defines one.
class AttentionForm {
 public:
  AttentionForm(AlgorithmBuilder& builder, const Node& node, const AttentionProblem& problem)
      : builder_(builder),
        node_(node),
        problem_(problem),
        name_(builder.name(problem.anchor)),
        batch_(builder.type(problem.anchor)) {}

  void define() {
    const Func logit = logits(dots(keys()));
    const Func peak = over_lanes("_max", over_panels("_peaks", logit, true), true);
    const Func power = powers(logit, peak);
    const Func sum = over_lanes("_sum", over_panels("_sums", power, false), false);
    const Func fold = folds(power, values());
    const Var d0("d0");
    builder_.define(problem_.anchor, [&](const Coordinates&) {
      const Expr value = fold(batch_.with({d0 % panel_width, d0 / panel_width, d1_}));
      const Expr total = sum(batch_.with({d1_}));
      // One division a row will do for the digits of bf16.
      return problem_.element == DType::bf16 ? strict_mul(value, strict_div(1.0F, total))
                                             : strict_div(value, total);
    });
  }

 private:
  [[nodiscard]] Expr clamped(const Expr& index, const Extent& extent, bool is_whole) const {
    // Both ways: a vector shifted inwards over fewer than 16 elements starts below zero.
    return is_whole ? index : Halide::clamp(index, 0, builder_.extent(extent - 1));
  }
  [[nodiscard]] Extent position_panels() const {
    return problem_.position_panels_of(problem_.open_positions);
  }
  [[nodiscard]] bool has_whole_panels() const {
    return position_panels() * panel_width == problem_.open_positions;
  }
  [[nodiscard]] Expr clamped_position(const Expr& index) const {
    return clamped(index, problem_.open_positions, has_whole_panels());
  }

  Func keys() {
    Func stage = builder_.stage(name_ + "_keys");
    stage(panel_vars()) = stored(problem_.k, batch_.at(clamped_position(p_ * panel_width + v_), panel_row()));
    return stage;
  }
  Func dots(const Func& keys) {
    const PairedFold k = problem_.pair() > 1 ? paired_fold(problem_.depth, problem_.pair())
                                             : single_fold(builder_.extent(problem_.open_depth));
    Func stage = builder_.stage(name_ + "_dot");
    stage(batch_.vars({v_, p_, d1_})) = 0.0F;
    stage(batch_.vars({v_, p_, d1_})) += stored_product(stored(problem_.q, batch_.at(d1_, k.whole)),
                                                        keys(batch_.with(joined_pair(k, {v_, k.outer, p_}))));
    return stage;
  }
  Func logits(const Func& dot) {
    Func stage = builder_.stage(name_ + "_logit");
    const Expr position = p_ * panel_width + v_;
    const Expr score = dot(batch_.with({v_, p_, d1_}));
    Expr logit = attention_logit(builder_, node_, score, batch_.at(d1_, clamped_position(position)));
    if (!has_whole_panels()) {
      constexpr float infinity = std::numeric_limits<float>::infinity();
      logit = Halide::min(
          logit, Halide::select(position < builder_.extent(problem_.open_positions), infinity, -infinity));
    }
    stage(batch_.vars({v_, p_, d1_})) = logit;
    return stage;
  }
  /// Where a fold by max or by addition starts.
  [[nodiscard]] static Expr start(bool by_max) {
    return by_max ? Expr(-std::numeric_limits<float>::infinity()) : Expr(0.0F);
  }
  /// Folds the panels of `source` into one, lane by lane.
  Func over_panels(const std::string& suffix, const Func& source, bool by_max) {
    const Halide::RDom r = open_reduction_domain({builder_.extent(position_panels())});
    Func stage = builder_.stage(name_ + suffix);
    const std::vector<Expr> arguments = batch_.with({v_, d1_});
    const Expr element = Halide::cast<float>(source(batch_.with({v_, r[0], d1_})));
    stage(batch_.vars({v_, d1_})) = start(by_max);
    stage(batch_.vars({v_, d1_})) =
        by_max ? Halide::max(stage(arguments), element) : stage(arguments) + element;
    return stage;
  }
  /// Folds the lanes, half onto half: neither waits for the one before it, as in a row, nor rounds as often.
  Func over_lanes(const std::string& suffix, const Func& source, bool by_max) {
    std::vector<Expr> parts;
    parts.reserve(panel_width);
    for (int lane = 0; lane < panel_width; ++lane) parts.push_back(source(batch_.with({lane, d1_})));
    for (std::size_t count = parts.size() / 2; count > 0; count /= 2)
      for (std::size_t i = 0; i < count; ++i)
        parts[i] = by_max ? Halide::max(parts[i], parts[i + count]) : strict_add(parts[i], parts[i + count]);
    Func stage = builder_.stage(name_ + suffix);
    stage(batch_.vars({d1_})) = parts[0];
    return stage;
  }
  Func powers(const Func& logit, const Func& peak) {
    Func stage = builder_.stage(name_ + "_exp");
    const Expr below = strict_sub(logit(batch_.with({v_, p_, d1_})), peak(batch_.with({d1_})));
    const Expr power =
        problem_.element == DType::bf16 ? coarse_exp_up_to_zero(below) : math_exp_up_to_zero(below);
    stage(batch_.vars({v_, p_, d1_})) = to_storage(power, problem_.element);
    return stage;
  }
  Func values() {
    Func stage = builder_.stage(name_ + "_values");
    const Expr position = panel_row();
    const bool is_whole = problem_.columns != open_extent && problem_.columns % panel_width == 0;
    const Expr column = clamped(p_ * panel_width + v_, problem_.open_columns, is_whole);
    const Expr value = stored(problem_.v, batch_.at(clamped_position(position), column));
    // Probability 0 times an infinity would be NaN.
    stage(panel_vars()) = has_whole_panels()
                              ? value
                              : Halide::select(position < builder_.extent(problem_.open_positions), value,
                                               Halide::Internal::make_zero(value.type()));
    return stage;
  }
  Func folds(const Func& power, const Func& value) {
    const int pair = problem_.pair();
    const PairedFold v = paired_fold(panel_width, pair, builder_.extent(position_panels()));
    const Expr panel = v.domain[pair > 1 ? 2 : 1];
    Func stage = builder_.stage(name_ + "_fold");
    stage(batch_.vars({v_, p_, d1_})) = 0.0F;
    stage(batch_.vars({v_, p_, d1_})) +=
        stored_product(power(batch_.with({v.whole, panel, d1_})),
                       value(batch_.with(joined_pair(v, {v_, panel * (panel_width / pair) + v.outer, p_}))));
    return stage;
  }

  /// The element of an operand as it is stored.
  [[nodiscard]] Expr stored(ValueId id, const Coordinates& where) const {
    return to_storage(builder_.read_stored(id, builder_.broadcast_coordinates(id, where)), problem_.element);
  }
  /// The arguments of panels, and the row of the operand that they hold.
  [[nodiscard]] std::vector<Var> panel_vars() const {
    return problem_.pair() > 1 ? batch_.vars({u_, v_, k_, p_}) : batch_.vars({v_, k_, p_});
  }
  [[nodiscard]] Expr panel_row() const { return problem_.pair() > 1 ? k_ * problem_.pair() + u_ : Expr(k_); }

  AlgorithmBuilder& builder_;
  const Node& node_;
  const AttentionProblem& problem_;
  std::string name_;
  BatchVars batch_;
  Var u_{"u"};
  Var v_{"v"};
  Var p_{"p"};
  Var k_{"k"};
  Var d1_{"d1"};
};

}  // namespace

Algorithm build_attention_rows(const Kernel& kernel, const Form&) {
  const AttentionProblem problem = require_attention(kernel);
  AlgorithmBuilder builder(kernel, layout_packings(kernel));
  builder.define_before(kernel.anchor);
  AttentionForm(builder, kernel.body.node(kernel.anchor), problem).define();
  builder.define_rest();
  return builder.finish();
}

}  // namespace sylvite
