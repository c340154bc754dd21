// Norms, gates and recurrences of com.microsoft, of decoders whose attention is linear.

#include <cmath>

#include "base/error.h"
#include "frontend/build/normalization.h"
#include "frontend/onnx/attention.h"
#include "frontend/onnx/linear_attention.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/refuse.h"

namespace sylvite {
namespace {

Sym as_float(Sym x) {
  return x ? cast(x, DType::f32) : x;
}

/// x of [..., C * H] as [..., C, H].
Sym in_groups(Sym x, std::int64_t width) {
  if (x.rank() < 1 || width < 1 || x.dim(-1) % width != 0)
    throw ModelError("rows of {} elements, expected a multiple of {}", x.rank() < 1 ? 0 : x.dim(-1), width);
  Dims dims = x.dims();
  dims.back() /= width;
  dims.push_back(width);
  return reshape(x, dims);
}

void gated_rms_norm(ImportContext& c) {
  const Sym x = c.input(0);
  const Sym scale = c.input(1);
  const std::string activation = c.string("activation", "silu");
  if (activation != "silu" && activation != "swish" && activation != "sigmoid")
    throw ModelError("activation is '{}'", activation);
  const Sym rows = in_groups(as_float(x), scale.size());
  const Sym y = rms_norm(rows, as_float(scale), rows.rank() - 1, c.real("epsilon", 1e-5));
  const Sym gate = apply(activation == "sigmoid" ? Op::sigmoid : Op::silu, as_float(c.input(2)));
  c.output(cast(reshape(y, x.dims()) * gate, x.dtype()));
}

void branchwise_rms_norm(ImportContext& c) {
  const Sym x = c.input(0);
  const std::int64_t branches = c.integer("num_branches", 0);
  if (branches < 0 || (branches > 0 && x.dim(-1) % branches != 0))
    throw ModelError("num_branches is {} for rows of {} elements", branches, x.dim(-1));
  const Sym rows = branches == 0 ? as_float(x) : in_groups(as_float(x), x.dim(-1) / branches);
  const std::int64_t width = rows.dim(-1);
  const Sym mean = reduce_mean(rows * rows, {rows.rank() - 1});
  Sym y = rows * apply(Op::rsqrt, mean + c.real("epsilon", 1e-5));
  if (const Sym scale = as_float(c.optional(1)))
    y = y *
        (scale.size() == width ? reshape(scale, {width}) : in_groups(reshape(scale, {scale.size()}), width));
  c.output(cast(reshape(y, x.dims()), x.dtype()));
}

/// Each step is rounded to x's type.
void scaled_silu(ImportContext& c) {
  const Sym x = c.input(0);
  const Sym scale = as_float(c.optional(1));
  const double alpha = c.real("alpha", 1);
  const Sym scaled = cast(scale ? as_float(x) * reshape(scale, {}) : as_float(x) * alpha, x.dtype());
  c.output(scaled * cast(apply(Op::sigmoid, as_float(scaled)), x.dtype()));
}

void gated_add(ImportContext& c) {
  refuse_input(c, 3, "gate_weight");
  c.output(c.input(0) + c.input(1) * c.input(2));
}

void linear_attention_gate(ImportContext& c) {
  const Sym a = c.input(0);
  c.output(0, cast(c.input(2) * apply(Op::softplus, as_float(a) + c.input(1)), a.dtype()));
  const Sym b = c.optional(3);
  if (!b && c.wants_output(1)) throw ModelError("output 'beta' needs input 'b'");
  if (b) c.output(1, cast(apply(Op::sigmoid, as_float(b)), b.dtype()));
}

/// Sizes of a gated delta network, and its tokens: [T, B, ...] is what steps take.
struct DeltaNet {
  std::int64_t batch = 0, heads = 0, wide = 0, deep = 0;  ///< of the state: [batch, heads, wide, deep]

  /// x of [B * T, H, D] or [B, T, H, D], whose vectors have so many elements.
  [[nodiscard]] Sym steps(Sym x, std::int64_t width) const {
    if (x.rank() < 3 || x.dim(-1) != width || x.size() % (batch * x.dim(-2) * width) != 0)
      throw ModelError("tokens of [{}] do not fit {} sequences and vectors of {}", fmt::join(x.dims(), ","),
                       batch, width);
    return transpose(reshape(as_float(x), {batch, x.size() / (batch * x.dim(-2) * width), x.dim(-2), width}),
                     {1, 0, 2, 3});
  }
};

Sym unit_vectors(Sym x) {
  constexpr double epsilon = 1e-6;
  return x * apply(Op::rsqrt, reduce(Op::reduce_sum, x * x, {3}) + epsilon);
}

/// The logarithm of the decay, of what the model gives for it: [T, B, H, 1 or Dk].
Sym effective_decay(ImportContext& c, const DeltaNet& net, Sym decay) {
  const std::string activation = c.string("gate_activation", "none");
  if (activation == "none") return decay;
  const Sym slope = apply(Op::exp, reshape(as_float(c.input(7)), {net.heads, 1}));
  const Sym bias = as_float(c.input(8));
  const Sym shifted = decay + reshape(bias, {net.heads, bias.size() / net.heads});
  if (activation == "softplus" || activation == "qwen") return -(slope * apply(Op::softplus, shifted));
  if (activation == "sigmoid" || activation == "kda")
    return apply(Op::sigmoid, slope * shifted) * c.real("gate_lower_bound", -5);
  throw UnsupportedError("gate_activation '{}' is not supported", activation);
}

/// Query, key and value, [T, B, heads, elements]; packed, they are one row after the other for each token.
void read_tokens(ImportContext& c, const DeltaNet& net, LinearAttention& in) {
  const Sym q = c.input(0);
  if (c.has_input(1) != c.has_input(2)) throw ModelError("key and value belong together");
  if (c.has_input(1)) {
    in.q = net.steps(q, net.deep);
    in.k = net.steps(c.input(1), net.deep);
    in.v = net.steps(c.input(2), net.wide);
    return;
  }
  const std::int64_t values = net.heads * net.wide;
  const std::int64_t keys = (q.dim(-1) - values) / 2;
  if (keys < net.deep || 2 * keys + values != q.dim(-1))
    throw ModelError("packed rows of {} elements hold no heads of {}", q.dim(-1), net.deep);
  const std::vector<Sym> parts = split(q, q.rank() - 1, {keys, keys, values});
  const auto heads = [&](Sym part, std::int64_t width) { return net.steps(in_groups(part, width), width); };
  in.q = heads(parts[0], net.deep);
  in.k = heads(parts[1], net.deep);
  in.v = heads(parts[2], net.wide);
}

Sym repeated(Sym x, std::int64_t heads) {
  return transpose(repeat_heads(transpose(x, {1, 2, 0, 3}), heads), {2, 0, 1, 3});
}

void gated_delta_net(ImportContext& c) {
  refuse_attributes(c, {"state_update_capacity"});
  (void)c.integer("chunk_size", 0);
  (void)c.optional(10);
  refuse_input(c, 9, "capture_count");
  const Sym state = c.optional(6);
  if (!state || state.rank() != 4) throw UnsupportedError("input 'initial_state' of rank 4 is needed");
  if (const Sym ends = c.optional(3); ends && ends.size() != 2)
    throw UnsupportedError("cu_seqlens of {} sequences; one is supported", ends.size() - 1);
  const DeltaNet net{state.dim(0), state.dim(1), state.dim(2), state.dim(3)};
  const std::string rule = c.string("update_rule", "gated_delta");
  LinearAttention in;
  read_tokens(c, net, in);
  if (c.integer("qk_l2_norm", 0) != 0) {
    in.q = unit_vectors(in.q);
    in.k = unit_vectors(in.k);
  }
  in.q = repeated(in.q, net.heads);
  in.k = repeated(in.k, net.heads);
  const Dims tokens{net.batch, in.q.dim(0), net.heads};
  const auto gate = [&](int i) {
    const Sym x = as_float(c.input(i));
    return transpose(
        reshape(x, {tokens[0], tokens[1], tokens[2], x.size() / checked_product(tokens, "gates")}),
        {1, 0, 2, 3});
  };
  if (rule == "gated" || rule == "gated_delta") in.decay = effective_decay(c, net, gate(4));
  if (rule == "delta" || rule == "gated_delta") {
    const std::string activation = c.string("beta_activation", "none");
    in.beta = activation == "sigmoid" ? apply(Op::sigmoid, gate(5)) : gate(5);
  }
  const double scale = c.real("scale", 0);
  in.scale = scale == 0 ? 1 / std::sqrt(static_cast<double>(net.deep)) : scale;
  const auto [read, last] = linear_recurrence(in, swap_axes(as_float(state), 2, 3));
  const Dims shape = c.has_input(2) ? c.input(2).dims() : Dims{tokens[0] * tokens[1], net.heads, net.wide};
  c.output(0, cast(reshape(transpose(read, {1, 0, 2, 3}), shape), c.input(0).dtype()));
  c.output(1, swap_axes(last, 2, 3));
}

const OnnxOp contrib_gates_rows[] = {
    {"BranchwiseRMSNorm", 1, branchwise_rms_norm, microsoft},
    {"GatedAdd", 1, gated_add, microsoft},
    {"GatedDeltaNet", 1, gated_delta_net, microsoft},
    {"GatedRMSNorm", 1, gated_rms_norm, microsoft},
    {"LinearAttentionGate", 1, linear_attention_gate, microsoft},
    {"ScaledSiLU", 1, scaled_silu, microsoft},
};

}  // namespace

std::span<const OnnxOp> onnx_contrib_gate_ops() {
  return contrib_gates_rows;
}

}  // namespace sylvite
