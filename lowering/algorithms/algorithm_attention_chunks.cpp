#include <limits>

#include "base/error.h"
#include "base/rounding.h"
#include "lowering/algorithms/algorithm_builder.h"
#include "lowering/algorithms/algorithm_forms.h"
#include "lowering/algorithms/algorithm_nodes.h"
#include "lowering/algorithms/batch_vars.h"
#include "lowering/algorithms/halide_math.h"
#include "lowering/algorithms/problems.h"

// Form attention_chunks{chunk=64}: attention of a few rows, such as new tokens over a cache, in chunks of key positions.
// Keys and values are read once, as they lie; chunks that a mask hides whole, as false or as -inf, are not read at all. With
// v0 the attention, s a chunk, and d1, d2... the row and the batch dims of v0 itself:
//   v0_alive(s, d2...)           1 where a row sees a position of the chunk; folds over r0 = positions and r1 = rows; of s
//                                alone where all batch entries have one mask
//   v0_lanes(v, i, d1, s...)     products of a query and the key of position i of the chunk; folds over r0 = depth / 16
//   v0_dot(i, d1, s...)          folds these over r0 = v
//   v0_logit(i, d1, s...)        scaled, capped and masked; -inf beyond the last position
//   v0_top(d1, s...)             the largest of the chunk, over r0 = i
//   v0_exp(i, d1, s...)          exp(logit - top)
//   v0_share(d1, s...)           the sum of these, over r0 = i
//   v0_part(d0, d1, s...)        values times these, over r0 = i
//   v0_state(d0, d1, d2...)      values, sums and the largest so far, over r0 = s

namespace sylvite {
namespace {

using Halide::Expr;
using Halide::Func;
using Halide::Tuple;
using Halide::Var;

constexpr int lanes = 16;

/// Builds the stages one after the other.
class ChunkForm {
 public:
  ChunkForm(AlgorithmBuilder& builder, const Node& node, const AttentionProblem& problem, std::int64_t chunk)
      : builder_(builder),
        node_(node),
        problem_(problem),
        chunk_(to_int(chunk)),
        positions_(problem.open_positions),
        name_(builder.name(problem.anchor)),
        batch_(builder.type(problem.anchor)) {}

  void define() {
    const Func logit = logits(dots());
    const Func top = over_chunk("_top", logit, true);
    const Func power = powers(logit, top);
    const Func share = over_chunk("_share", power, false);
    const Func state = states(top, share, parts(power));
    const Var d0("d0");
    builder_.define(problem_.anchor, [&](const Coordinates&) {
      const std::vector<Expr> at = batch_.with({d0, d1_});
      return strict_div(state(at)[0], state(at)[1]);
    });
  }

 private:
  /// In f32.
  [[nodiscard]] Expr element(ValueId id, const Coordinates& where) const {
    return Halide::cast<float>(builder_.read(id, builder_.broadcast_coordinates(id, where)));
  }
  [[nodiscard]] Extent chunks() const { return ceil_div(positions_, chunk_); }
  [[nodiscard]] bool has_whole_chunks() const { return chunks() * chunk_ == positions_; }
  [[nodiscard]] Expr is_position(const Expr& index) const { return index < builder_.extent(positions_); }
  [[nodiscard]] Expr position(const Expr& s, const Expr& i) const { return s * chunk_ + i; }
  [[nodiscard]] Expr inside(const Expr& index) const {
    return has_whole_chunks() ? index : Halide::min(index, builder_.extent(positions_ - 1));
  }

  Func dots() {
    const Halide::RDom k = reduction_domain({problem_.depth / lanes});
    Func partial = builder_.stage(name_ + "_lanes");
    const Expr depth = k[0] * lanes + v_;
    partial(batch_.vars({v_, i_, d1_, s_})) = 0.0F;
    partial(batch_.vars({v_, i_, d1_, s_})) +=
        element(problem_.q, batch_.at(d1_, depth)) *
        element(problem_.k, batch_.at(inside(position(s_, i_)), depth));
    const Halide::RDom all = reduction_domain({lanes});
    Func dot = builder_.stage(name_ + "_dot");
    dot(batch_.vars({i_, d1_, s_})) = 0.0F;
    dot(batch_.vars({i_, d1_, s_})) += partial(batch_.with({all[0], i_, d1_, s_}));
    return dot;
  }
  Func logits(const Func& dot) {
    Func stage = builder_.stage(name_ + "_logit");
    const Expr index = position(s_, i_);
    Expr logit =
        attention_logit(builder_, node_, dot(batch_.with({i_, d1_, s_})), batch_.at(d1_, inside(index)));
    constexpr float infinity = std::numeric_limits<float>::infinity();
    if (!has_whole_chunks())
      logit = Halide::min(logit, Halide::select(is_position(index), infinity, -infinity));
    stage(batch_.vars({i_, d1_, s_})) = logit;
    return stage;
  }
  Func over_chunk(const std::string& suffix, const Func& source, bool by_max) {
    const Halide::RDom r = reduction_domain({chunk_});
    Func stage = builder_.stage(name_ + suffix);
    const std::vector<Expr> place = batch_.with({d1_, s_});
    const Expr each = source(batch_.with({r[0], d1_, s_}));
    // Of a chunk that is masked whole, the differences below must be numbers.
    stage(batch_.vars({d1_, s_})) = by_max ? Expr(std::numeric_limits<float>::lowest()) : Expr(0.0F);
    stage(batch_.vars({d1_, s_})) = by_max ? Halide::max(stage(place), each) : stage(place) + each;
    return stage;
  }
  Func powers(const Func& logit, const Func& top) {
    Func stage = builder_.stage(name_ + "_exp");
    stage(batch_.vars({i_, d1_, s_})) =
        math_exp_up_to_zero(strict_sub(logit(batch_.with({i_, d1_, s_})), top(batch_.with({d1_, s_}))));
    return stage;
  }
  Func parts(const Func& power) {
    const Halide::RDom r = reduction_domain({chunk_});
    const Var d0("d0");
    const Expr index = position(s_, r[0]);
    Expr value = element(problem_.v, batch_.at(inside(index), d0));
    // Probability 0 times an infinity would be NaN.
    if (!has_whole_chunks()) value = Halide::select(is_position(index), value, 0.0F);
    Func stage = builder_.stage(name_ + "_part");
    stage(batch_.vars({d0, d1_, s_})) = 0.0F;
    stage(batch_.vars({d0, d1_, s_})) += power(batch_.with({r[0], d1_, s_})) * value;
    return stage;
  }
  /// Does a row see a position of the chunk? Undefined without a mask that can hide keys.
  Func alive() {
    const ValueId mask = hiding_mask(builder_.body(), node_);
    if (mask == no_value) return {};
    const Halide::RDom r = reduction_domain({chunk_, problem_.rows});
    const Expr value = builder_.read_broadcast(mask, batch_.at(r[1], inside(position(s_, r[0]))));
    const bool is_truth = builder_.type(mask).dtype == DType::boolean;
    const Expr added = Halide::cast<float>(value);
    const Expr seen = is_truth ? value : !(is_infinity(added) && added < 0.0F);
    Func stage = builder_.stage(name_ + "_alive");
    const std::vector<Expr> place = alive_at(s_);
    stage(is_shared(mask) ? std::vector<Var>{s_} : batch_.vars({s_})) = Halide::cast<std::uint8_t>(0);
    stage(place) = Halide::max(stage(place), Halide::cast<std::uint8_t>(seen));
    return stage;
  }
  /// One mask for all batch entries?
  [[nodiscard]] bool is_shared(ValueId mask) const {
    return leading_product(builder_.type(mask).shape) == Extent(1);
  }
  [[nodiscard]] std::vector<Expr> alive_at(const Expr& s) const {
    return is_shared(hiding_mask(builder_.body(), node_)) ? std::vector<Expr>{s} : batch_.with({s});
  }
  Func states(const Func& top, const Func& share, const Func& part) {
    const Var d0("d0");
    Halide::RDom domain = open_reduction_domain({builder_.extent(chunks())});
    const Expr s = domain[0];
    if (const Func seen = alive(); seen.defined()) domain.where(seen(alive_at(s)) != 0);
    Func stage = builder_.stage(name_ + "_state");
    const std::vector<Expr> place = batch_.with({d0, d1_});
    stage(batch_.vars({d0, d1_})) = Tuple(0.0F, 0.0F, std::numeric_limits<float>::lowest());
    const Expr last = stage(place)[2];
    const Expr now = Halide::max(last, top(batch_.with({d1_, s})));
    const Expr old_factor = math_exp_up_to_zero(strict_sub(last, now));
    const Expr new_factor = math_exp_up_to_zero(strict_sub(top(batch_.with({d1_, s})), now));
    stage(batch_.vars({d0, d1_})) =
        Tuple(stage(place)[0] * old_factor + part(batch_.with({d0, d1_, s})) * new_factor,
              stage(place)[1] * old_factor + share(batch_.with({d1_, s})) * new_factor, now);
    return stage;
  }

  AlgorithmBuilder& builder_;
  const Node& node_;
  const AttentionProblem& problem_;
  int chunk_;
  Extent positions_;
  std::string name_;
  BatchVars batch_;
  Var v_{"v"};
  Var i_{"i"};
  Var s_{"s"};
  Var d1_{"d1"};
};

}  // namespace

Algorithm build_attention_chunks(const Kernel& kernel, const Form& form) {
  const Reading<AttentionProblem> reading = read_attention_chunks(kernel);
  if (!reading.refusal.empty())
    throw UnsupportedError("attention by chunks cannot take the kernel: {}", reading.refusal);
  AlgorithmBuilder builder(kernel, layout_packings(kernel));
  builder.define_before(kernel.anchor);
  ChunkForm(builder, kernel.body.node(kernel.anchor), reading.problem, form.at("chunk")).define();
  builder.define_rest();
  return builder.finish();
}

}  // namespace sylvite
