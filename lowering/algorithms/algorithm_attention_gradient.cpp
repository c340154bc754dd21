#include <limits>

#include "frontend/ops/attention_scale.h"
#include "lowering/algorithms/algorithm_nodes.h"
#include "lowering/algorithms/halide_math.h"
#include "lowering/algorithms/halide_types.h"

// Gradients of attention, plain. Scores are indexed [key, query, batch...], innermost first. Stages: vN_score and vN_slope with
// sums over the depth as update 0; of attention_sums vN_max and vN_sum over the keys; of attention_gradient vN_fold over the keys
// or the queries.

namespace sylvite {
namespace {

using Halide::cast;
using Halide::Expr;
using Halide::Func;
using Halide::Var;

/// What both operations have: products of rows of two values [..., rows, depth].
class Heads {
 public:
  /// `mask`: the number of that input.
  Heads(AlgorithmBuilder& builder, const Node& node, std::size_t mask) : builder_(builder), node_(node) {
    if (node.inputs.size() > mask) mask_ = node.inputs[mask];
    const Shape& q = builder.type(node.inputs[0]).shape;
    Shape scores = q;
    scores.back() = builder.type(node.inputs[1]).shape[q.size() - 2];
    type_ = make_type(DType::f32, scores);
  }

  [[nodiscard]] const TensorType& type() const { return type_; }

  Func products(const char* suffix, ValueId rows, ValueId keys) {
    const std::size_t rank = type_.shape.size();
    const std::vector<Var> vars = AlgorithmBuilder::vars_of(type_);
    Coordinates at_row = AlgorithmBuilder::coordinates_of(type_), at_key = at_row;
    const Halide::RDom depth = open_reduction_domain({builder_.extent(builder_.type(rows).shape.back())});
    at_key[rank - 2] = at_row[rank - 1];
    at_row[rank - 1] = at_key[rank - 1] = Expr(depth[0]);
    Func products = builder_.stage(name() + suffix);
    products(vars) = 0.0F;
    products(vars) += cast<float>(builder_.read(rows, at_row)) * cast<float>(builder_.read(keys, at_key));
    return products;
  }

  /// From the product of a query and a key, `at` their place among the scores: -inf where the query does not see the key.
  [[nodiscard]] Expr logit(const Expr& product, const Coordinates& at) const {
    const Expr infinity = std::numeric_limits<float>::infinity();
    Expr logit = product * scale();
    if (mask_ != no_value) {
      const Expr mask = builder_.read_broadcast(mask_, at);
      logit = mask.type().is_bool() ? Halide::select(mask, logit, -infinity) : logit + cast<float>(mask);
    }
    if (node_.attributes.integer("causal") == 0) return logit;
    // A limit that may be taken for one of the loops is none of a minimum.
    const Expr &query = at[at.size() - 2].full, &key = at[at.size() - 1].full;
    return Halide::min(logit, Halide::select(key <= query, infinity, -infinity));
  }
  [[nodiscard]] float scale() const {
    const std::int64_t depth = builder_.type(node_.inputs[0]).shape.back().known();
    return static_cast<float>(attention_scale(node_.attributes, depth));
  }
  [[nodiscard]] std::string name() const { return builder_.name(node_.outputs.front()); }

 private:
  AlgorithmBuilder& builder_;
  const Node& node_;
  ValueId mask_ = no_value;
  TensorType type_;
};

}  // namespace

void define_attention_sums(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front();
  Heads heads(builder, node, 2);
  const Func score = heads.products("_score", node.inputs[0], node.inputs[1]);
  const std::vector<Var> vars = AlgorithmBuilder::vars_of(builder.type(out));
  const Halide::RDom keys = open_reduction_domain({builder.extent(heads.type().shape.back())});
  std::vector<Expr> at = {keys[0]};
  at.insert(at.end(), vars.begin(), vars.end());
  Coordinates at_score = AlgorithmBuilder::coordinates_of(builder.type(out));
  at_score.emplace_back(Expr(keys[0]));
  const Expr logit = heads.logit(score(at), at_score);
  Func highest = builder.stage(heads.name() + "_max");
  highest(vars) = -3.4e38F;  // of a row that sees no key, whose powers are zero
  highest(vars) = Halide::max(highest(vars), logit);
  Func sum = builder.stage(heads.name() + "_sum");
  sum(vars) = 0.0F;
  sum(vars) += math_exp_up_to_zero(logit - highest(vars));
  builder.define(out, [&](const Coordinates&) { return highest(vars) + math_log(sum(vars)); });
}

void define_attention_gradient(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front();
  const std::int64_t of = node.attributes.integer("of");
  Heads heads(builder, node, 6);
  const Func score = heads.products("_score", node.inputs[0], node.inputs[1]);
  const Func slope = heads.products("_slope", node.inputs[3], node.inputs[2]);
  const TensorType& type = builder.type(out);
  const std::size_t rank = type.shape.size();
  const std::vector<Var> vars = AlgorithmBuilder::vars_of(type);
  const Coordinates at = AlgorithmBuilder::coordinates_of(type);
  const Extent& folded_rows = heads.type().shape[of == 0 ? rank - 1 : rank - 2];
  const Halide::RDom rows = open_reduction_domain({builder.extent(folded_rows)});
  const Expr key = of == 0 ? Expr(rows[0]) : Expr(vars[1]), query = of == 0 ? Expr(vars[1]) : Expr(rows[0]);
  std::vector<Expr> at_score = {key, query};
  at_score.insert(at_score.end(), vars.begin() + 2, vars.end());
  Coordinates at_query(at.begin(), at.end() - 1), at_row = at;
  at_query[rank - 2] = query;
  at_row[rank - 2] = Expr(rows[0]);
  Coordinates at_logit = at_query;
  at_logit.emplace_back(key);
  const Expr logit = heads.logit(score(at_score), at_logit);
  const Expr power = math_exp_up_to_zero(Halide::min(logit - builder.read(node.inputs[4], at_query), 0.0F));
  const Expr is_hidden = is_infinity(logit) && logit < 0.0F;
  const Expr weight = Halide::select(is_hidden, 0.0F, power);
  const Expr change = weight * (slope(at_score) - builder.read(node.inputs[5], at_query)) * heads.scale();
  const ValueId read = node.inputs[of == 0 ? 1 : of == 1 ? 0 : 3];
  Func folded = builder.stage(heads.name() + "_fold");
  folded(vars) = 0.0F;
  folded(vars) += (of == 2 ? weight : change) * cast<float>(builder.read(read, at_row));
  builder.define(out,
                 [&](const Coordinates&) -> Expr { return cast(compute_type_of(type.dtype), folded(vars)); });
}

}  // namespace sylvite
