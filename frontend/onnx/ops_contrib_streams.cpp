// Operators of com.microsoft of decoders with several residual streams: what mixes them, their gates, and the choice of experts.

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "frontend/build/normalization.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/refuse.h"

namespace sylvite {
namespace {

Sym as_f32(Sym x) {
  return cast(x, DType::f32);
}

/// [..., C, H] in f32, of streams that are so or, with num_branches, lie in one row.
Sym read_streams(ImportContext& c) {
  const Sym x = as_f32(c.input(0));
  const std::int64_t branches = c.integer("num_branches", 0);
  if (branches == 0 && x.rank() < 2) throw ModelError("streams of rank {}, expected at least 2", x.rank());
  if (branches == 0) return x;
  if (branches < 0 || x.rank() < 1 || x.dim(-1) % branches != 0)
    throw ModelError("num_branches is {} for streams of rank {}", branches, x.rank());
  Dims dims = x.dims();
  dims.back() /= branches;
  dims.insert(dims.end() - 1, branches);
  return reshape(x, dims);
}

/// A gate for each stream or for each of its elements, such that it scales `streams`.
Sym read_gates(ImportContext& c, int i, Sym streams) {
  const Sym gates = as_f32(c.input(i));
  const std::int64_t count = streams.size() / std::max<std::int64_t>(streams.dim(-1), 1);
  Dims dims = streams.dims();
  if (gates.size() == count) dims.back() = 1;
  if (gates.size() != checked_product(dims, "gates"))
    throw ModelError("input {} has {} elements, expected one for each of {} streams or of their elements", i,
                     gates.size(), count);
  return reshape(gates, dims);
}

void pre_mix(ImportContext& c) {
  const Sym streams = read_streams(c);
  const Sym mixed = streams * read_gates(c, 1, streams);
  const Sym sum = reduce(Op::reduce_sum, mixed, {streams.rank() - 2}, false);
  c.output(cast(sum * c.real("reduction_scale", 1), c.input(0).dtype()));
}

void post_mix(ImportContext& c) {
  const Sym streams = read_streams(c);
  Sym mixed = streams;
  if (const Sym matrix = c.optional(3)) mixed = matmul(swap_axes(as_f32(matrix), -1, -2), streams);
  const Sym branch = unsqueeze(as_f32(c.input(1)), {streams.rank() - 2});
  const Sym y = mixed + read_gates(c, 2, streams) * branch;
  c.output(cast(reshape(y, c.input(0).dims()), c.input(0).dtype()));
}

/// Of rows of [..., streams, H], each with factors of its own.
Sym scaled_norm(Sym x, Sym scale, double epsilon) {
  const Sym mean = reduce_mean(x * x, {x.rank() - 1});
  return x * apply(Op::rsqrt, mean + epsilon) * as_f32(scale);
}

void engram_gate(ImportContext& c) {
  const Sym key = as_f32(c.input(0));
  const double epsilon = c.real("epsilon", 1e-5);
  const DType dtype = c.input(0).dtype();
  if (key.rank() != 4) throw ModelError("the keys have rank {}, expected 4", key.rank());
  const Sym products =
      scaled_norm(key, c.input(3), epsilon) * scaled_norm(as_f32(c.input(1)), c.input(4), epsilon);
  const double width = std::sqrt(static_cast<double>(std::max<std::int64_t>(key.dim(3), 1)));
  const Sym dot = reduce(Op::reduce_sum, products, {3}) / width;
  const Sym root = apply(Op::sqrt, apply(Op::maximum, apply(Op::abs, dot), 1e-6));
  const Sym y = apply(Op::sigmoid, apply(Op::sign, dot) * root) * unsqueeze(as_f32(c.input(2)), {2});
  c.output(0, cast(y, dtype));
  const Sym scale = c.optional(5);
  if (scale)
    c.output(1, cast(scaled_norm(y, scale, epsilon), dtype));
  else if (c.wants_output(1))
    throw ModelError("output 'gated_value_normed' needs input 'conv_norm_scale'");
}

std::int64_t positive(ImportContext& c, const char* name, std::int64_t fallback, std::int64_t most) {
  const std::int64_t value = c.integer(name, fallback);
  if (value < 1 || value > most) throw ModelError("{} is {}, expected 1 to {}", name, value, most);
  return value;
}

/// Whether each place along the last axis holds one of the `count` largest elements.
Sym among_largest(Sym x, std::int64_t count) {
  GraphBuilder& b = x.builder();
  const std::int64_t axis = x.rank() - 1;
  const Sym places =
      b.add_all(Op::top_k, {x}, {{"axis", axis}, {"k", Dims{count}}, {"largest", std::int64_t{1}}})[1];
  const Sym chosen = b.add(
      Op::scatter_elements,
      {b.filled(DType::f32, x.dims(), 0), places, b.filled(DType::f32, places.dims(), 1)}, {{"axis", axis}});
  return apply(Op::greater, chosen, 0.0);
}

/// Scores of the experts that a token goes through: those of the groups whose best experts have the largest sums.
void group_router(ImportContext& c) {
  if (c.wants_output(1) || c.wants_output(2))
    throw UnsupportedError("outputs 'selection_scores' and 'router_weights' are not supported");
  refuse_input(c, 2, "projection_weight");
  const Sym given = c.input(0);
  if (given.rank() < 1 || given.size() == 0) throw ModelError("there are no logits");
  const std::int64_t experts = given.dim(-1), tokens = given.size() / experts;
  const std::int64_t groups = positive(c, "n_group", 1, experts);
  if (experts % groups != 0) throw ModelError("n_group {} does not divide {} experts", groups, experts);
  const std::int64_t of_group = experts / groups;
  const std::int64_t best = std::min(positive(c, "group_topk", 2, experts), of_group);
  const std::int64_t kept = positive(c, "topk_group", 1, groups);
  const std::int64_t chosen = positive(c, "top_k", 0, kept * of_group);
  GraphBuilder& b = c.builder();
  const Sym scores = apply(Op::sigmoid, as_f32(reshape(given, {tokens, experts})));
  Sym ranked = scores + reshape(c.input(1), {1, experts});
  if (kept < groups) {
    const Sym grouped = reshape(ranked, {tokens, groups, of_group});
    const Sym largest =
        b.add_all(Op::top_k, {grouped},
                  {{"axis", std::int64_t{2}}, {"k", Dims{best}}, {"largest", std::int64_t{1}}})[0];
    const Sym is_kept = unsqueeze(among_largest(reduce(Op::reduce_sum, largest, {2}, false), kept), {2});
    ranked = reshape(where(is_kept, grouped, -INFINITY), {tokens, experts});
  }
  const Sym y = where(among_largest(ranked, chosen), apply(Op::log, apply(Op::maximum, scores, 1e-20)),
                      c.real("router_sentinel", -10000));
  c.output(cast(y, given.dtype()));
}

const OnnxOp contrib_streams_rows[] = {
    {"EngramGate", 1, engram_gate, microsoft},
    {"HyperConnectionPostMix", 1, post_mix, microsoft},
    {"HyperConnectionPreMix", 1, pre_mix, microsoft},
    {"MoEGroupRouter", 1, group_router, microsoft},
};

}  // namespace

std::span<const OnnxOp> onnx_contrib_stream_ops() {
  return contrib_streams_rows;
}

}  // namespace sylvite
