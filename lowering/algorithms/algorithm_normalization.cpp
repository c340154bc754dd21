#include "base/error.h"
#include "frontend/ops/attention_scale.h"
#include "lowering/algorithms/algorithm_nodes.h"
#include "lowering/algorithms/halide_math.h"
#include "lowering/algorithms/halide_types.h"

// Softmax, layer_norm, rms_norm and attention. Stages, each over the vars of vN without the folded ones:
//   softmax, log_softmax: vN_max (update), vN_exp (pure, all vars), vN_sum (update), vN_inv or vN_log (pure)
//   layer_norm: vN_total (update), vN_mean (pure), vN_square (update), vN_rstd (pure), with groups over those as well; rms_norm
//   without the first two; attention: vN_score (update), vN_logit (pure), vN_max, vN_exp, vN_sum as softmax, vN_value
//   (update). vN_score to vN_exp have the vars d0 = key position, d1 = query position, d2.. = batch.

namespace sylvite {
namespace {

using Halide::cast;
using Halide::Expr;
using Halide::Func;
using Halide::select;
using Halide::Var;

Expr constant_of(const Halide::Type& type, double value) {
  return Halide::Internal::make_const(type, value);
}
Expr lowest(const Halide::Type& type) {
  return constant_of(type, -std::numeric_limits<double>::infinity());
}

/// The vars of `type` that do not belong to the folded logical dims first..last.
std::vector<Var> kept_vars(const TensorType& type, int first, int last) {
  const std::vector<Var> all = AlgorithmBuilder::vars_of(type);
  const bool blocked = type.layout.channel_block > 0;
  std::vector<Var> kept;
  for (std::size_t d = 0; d < all.size(); ++d) {
    const int logical =
        blocked ? (d == 0 ? 1 : type.rank() - static_cast<int>(d)) : type.rank() - 1 - static_cast<int>(d);
    if (logical < first || logical > last) kept.push_back(all[d]);
  }
  return kept;
}

Coordinates with_reduced(Coordinates at, int first, const ReducedDims& reduced) {
  for (std::size_t i = 0; i < reduced.at.size(); ++i) at[static_cast<std::size_t>(first) + i] = reduced.at[i];
  return at;
}

std::vector<int> axes_between(int first, int last) {
  std::vector<int> axes;
  for (int d = first; d <= last; ++d) axes.push_back(d);
  return axes;
}

/// A sum over dims first..last of `element`, as stage `name`.
Func sum_stage(AlgorithmBuilder& builder, const std::string& name, const TensorType& type, int first,
               int last, const std::function<Expr(const Coordinates&)>& element) {
  const ReducedDims reduced = builder.reduce_over(type, axes_between(first, last));
  const std::vector<Var> vars = kept_vars(type, first, last);
  const Expr term = element(with_reduced(AlgorithmBuilder::coordinates_of(type), first, reduced));
  Func sum = builder.stage(name);
  sum(vars) = Halide::Internal::make_zero(term.type());
  sum(vars) += term;
  return sum;
}

/// One over `known` times the number of elements from dim `first` on; where sizes are those of a run, rounded as a constant would be.
Expr share_of_each(const AlgorithmBuilder& builder, const TensorType& type, int first,
                   const Halide::Type& element, double known = 1) {
  Expr open;
  for (int d = first; d < type.rank(); ++d) {
    const Extent& extent = type.shape[static_cast<std::size_t>(d)];
    if (extent.is_known()) {
      known *= static_cast<double>(extent.known());
      continue;
    }
    const Expr factor = cast<double>(builder.extent(extent));
    open = open.defined() ? open * factor : factor;
  }
  if (!open.defined()) return constant_of(element, 1 / known);
  const Halide::Type wide = Halide::Float(64);
  return cast(element, strict_div(constant_of(wide, 1), open * constant_of(wide, known)));
}

}  // namespace

void define_softmax(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front();
  const ValueId in = node.inputs.front();
  const TensorType& type = builder.type(out);
  const std::string& name = builder.name(out);
  const int axis = static_cast<int>(node.attributes.integer("axis"));
  const std::vector<Var> kept = kept_vars(type, axis, axis);
  const std::vector<Var> all = AlgorithmBuilder::vars_of(type);
  const Halide::Type element = compute_type_of(type.dtype);

  const ReducedDims reduced = builder.reduce_over(type, {axis});
  Func highest = builder.stage(name + "_max");
  highest(kept) = lowest(element);
  const Expr x = builder.read(in, with_reduced(AlgorithmBuilder::coordinates_of(type), axis, reduced));
  highest(kept) = Halide::max(highest(kept), x);

  Func power = builder.stage(name + "_exp");
  const Expr shifted_x = strict_sub(builder.read(in, AlgorithmBuilder::coordinates_of(type)), highest(kept));
  power(all) = math_exp_up_to_zero(shifted_x);
  const Func sum = sum_stage(builder, name + "_sum", type, axis, axis, [&](const Coordinates& at) {
    return Expr(power(AlgorithmBuilder::arguments_of(type, at)));
  });
  if (node.op == Op::log_softmax) {
    Func log = builder.stage(name + "_log");
    log(kept) = math_log(sum(kept));
    builder.define(out, [&](const Coordinates&) { return strict_sub(shifted_x, log(kept)); });
    return;
  }
  Func inverse = builder.stage(name + "_inv");
  inverse(kept) = strict_div(constant_of(element, 1), sum(kept));
  builder.define(out, [&](const Coordinates&) { return strict_mul(power(all), inverse(kept)); });
}

namespace {

/// Parts of dim `axis`, each with all that follows it. What has a number for each part has the part as its first var.
void define_norm_of_groups(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front(), in = node.inputs.front();
  const TensorType& type = builder.type(out);
  const std::string& name = builder.name(out);
  const int axis = static_cast<int>(node.attributes.integer("axis")), last = type.rank() - 1;
  const auto split = static_cast<std::size_t>(axis);
  const std::int64_t members = type.shape[split].known() / node.attributes.integer("groups");
  const Halide::Type element = compute_type_of(type.dtype);
  const Expr share = share_of_each(builder, type, axis + 1, element, static_cast<double>(members));
  std::vector<Var> vars = kept_vars(type, axis, last);
  const Var part = AlgorithmBuilder::vars_of(type).front();
  vars.insert(vars.begin(), part);
  std::vector<Expr> extents = {to_int(members)};
  for (int d = last; d > axis; --d) extents.push_back(builder.extent(out, static_cast<std::size_t>(d)));
  const Halide::RDom domain = open_reduction_domain(extents);
  Coordinates each = AlgorithmBuilder::coordinates_of(type);
  each[split] = Expr(part * to_int(members) + domain[0]);
  for (int d = last; d > axis; --d) each[static_cast<std::size_t>(d)] = Expr(domain[last - d + 1]);

  const auto sum = [&](const std::string& stage, const Expr& term) {
    Func total = builder.stage(name + stage);
    total(vars) = constant_of(element, 0);
    total(vars) += term;
    return total;
  };
  const Func total = sum("_total", builder.read(in, each));
  Func mean = builder.stage(name + "_mean");
  mean(vars) = strict_mul(total(vars), share);
  const Expr apart = strict_sub(builder.read(in, each), mean(vars));
  const Func square = sum("_square", apart * apart);
  Func inverse = builder.stage(name + "_rstd");
  inverse(vars) = math_rsqrt(
      strict_add(strict_mul(square(vars), share), constant_of(element, node.attributes.real("epsilon"))));

  builder.define(out, [&](const Coordinates& at) {
    std::vector<Expr> of_part(vars.begin(), vars.end());
    of_part.front() = at[split].full / to_int(members);
    return strict_mul(strict_sub(builder.read(in, at), mean(of_part)), inverse(of_part));
  });
}

}  // namespace

void define_layer_norm(AlgorithmBuilder& builder, const Node& node) {
  if (node.attributes.has("groups")) return define_norm_of_groups(builder, node);
  const ValueId out = node.outputs.front();
  const ValueId in = node.inputs.front();
  const TensorType& type = builder.type(out);
  const std::string& name = builder.name(out);
  const int first = static_cast<int>(node.attributes.integer("axis"));
  const int last = type.rank() - 1;
  const std::vector<Var> kept = kept_vars(type, first, last);
  const Halide::Type element = compute_type_of(type.dtype);
  const Expr scale_of_sum = share_of_each(builder, type, first, element);

  const bool centred = node.op == Op::layer_norm;
  Func mean;
  if (centred) {
    const Func total = sum_stage(builder, name + "_total", type, first, last,
                                 [&](const Coordinates& at) { return builder.read(in, at); });
    mean = builder.stage(name + "_mean");
    mean(kept) = strict_mul(total(kept), scale_of_sum);
  }
  const auto difference = [&](const Coordinates& at) {
    const Expr x = builder.read(in, at);
    return centred ? strict_sub(x, mean(kept)) : x;
  };
  const Func square = sum_stage(builder, name + "_square", type, first, last, [&](const Coordinates& at) {
    const Expr x = difference(at);
    return x * x;
  });
  Func inverse = builder.stage(name + "_rstd");
  const Expr variance = strict_mul(square(kept), scale_of_sum);
  inverse(kept) = math_rsqrt(strict_add(variance, constant_of(element, node.attributes.real("epsilon"))));

  builder.define(out, [&](const Coordinates& at) {
    Expr result = strict_mul(difference(at), inverse(kept));
    const auto has = [&](std::size_t i) { return node.inputs.size() > i && node.inputs[i] != no_value; };
    if (has(1)) result = strict_mul(result, builder.read_broadcast(node.inputs[1], at));
    if (has(2)) result = strict_add(result, builder.read_broadcast(node.inputs[2], at));
    return result;
  });
}

namespace {

/// What scores are multiplied by: one over the root of the depth where nothing else is said.
Expr scale_of(AlgorithmBuilder& builder, const Node& node, Halide::Type element) {
  const Extent& depth = builder.type(node.inputs[0]).shape.back();
  if (!depth.is_known() && node.attributes.real("scale") == 0)
    return strict_div(constant_of(element, 1), math_sqrt(cast(element, builder.extent(depth))));
  return constant_of(element, attention_scale(node.attributes, depth.is_known() ? depth.known() : 0));
}

}  // namespace

Expr attention_logit(AlgorithmBuilder& builder, const Node& node, const Expr& score, const Coordinates& at) {
  const Halide::Type element = score.type();
  Expr logit = strict_mul(score, scale_of(builder, node, element));
  const double softcap = node.attributes.real("softcap");
  if (softcap != 0) {
    logit = strict_mul(math_tanh(strict_mul(logit, constant_of(element, 1 / softcap))),
                       constant_of(element, softcap));
  }
  if (node.inputs.size() > 3 && node.inputs[3] != no_value) {
    const Expr mask = builder.read_broadcast(node.inputs[3], at);
    logit =
        mask.type().is_bool() ? select(mask, logit, lowest(element)) : strict_add(logit, cast(element, mask));
  }
  if (node.attributes.integer("causal") != 0) {
    const std::size_t rank = at.size();
    // Not select(seen, logit, lowest): bounds inference would take the condition for a limit of the loops
    // over logits.
    logit =
        Halide::min(logit, select(at[rank - 1].full <= at[rank - 2].full, -lowest(element), lowest(element)));
  }
  return logit;
}

void define_attention(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front();
  const std::string& name = builder.name(out);
  const TensorType& type = builder.type(out);
  const Shape& q_shape = builder.type(node.inputs[0]).shape;
  const Shape& k_shape = builder.type(node.inputs[1]).shape;
  const std::size_t rank = q_shape.size();
  const Halide::Type element = compute_type_of(type.dtype);

  // Logits are indexed as a dense value [..., L, S] with the batch dims of the output.
  Shape logit_shape = type.shape;
  logit_shape[rank - 1] = k_shape[rank - 2];
  const TensorType logit_type = make_type(type.dtype, logit_shape);
  const std::vector<Var> vars = AlgorithmBuilder::vars_of(logit_type);
  const Coordinates at = AlgorithmBuilder::coordinates_of(logit_type);
  const int last = static_cast<int>(rank) - 1;

  const Halide::RDom depth = open_reduction_domain({builder.extent(q_shape[rank - 1])});
  Coordinates at_q = at;
  at_q[rank - 1] = Expr(depth[0]);
  Coordinates at_k = at;
  at_k[rank - 2] = at[rank - 1];
  at_k[rank - 1] = Expr(depth[0]);
  Func score = builder.stage(name + "_score");
  score(vars) = constant_of(element, 0);
  score(vars) += builder.read_broadcast(node.inputs[0], at_q) * builder.read_broadcast(node.inputs[1], at_k);
  Func logit = builder.stage(name + "_logit");
  logit(vars) = attention_logit(builder, node, score(vars), at);

  const std::vector<Var> kept = kept_vars(logit_type, last, last);
  const ReducedDims keys = builder.reduce_over(logit_type, {last});
  const std::vector<Expr> key_arguments =
      AlgorithmBuilder::arguments_of(logit_type, with_reduced(at, last, keys));
  Func highest = builder.stage(name + "_max");
  highest(kept) = lowest(element);
  highest(kept) = Halide::max(highest(kept), logit(key_arguments));
  Func power = builder.stage(name + "_exp");
  power(vars) = math_exp_up_to_zero(strict_sub(logit(vars), highest(kept)));
  Func sum = builder.stage(name + "_sum");
  sum(kept) = constant_of(element, 0);
  sum(kept) += power(key_arguments);

  Func total = builder.stage(name + "_value");
  const std::vector<Var> out_vars = AlgorithmBuilder::vars_of(type);
  Coordinates at_v = AlgorithmBuilder::coordinates_of(type);
  at_v[rank - 2] = keys.at.front();
  total(out_vars) = constant_of(element, 0);
  total(out_vars) += power(key_arguments) * builder.read_broadcast(node.inputs[2], at_v);
  builder.define(out, [&](const Coordinates&) { return strict_div(total(out_vars), sum(kept)); });
}

}  // namespace sylvite
