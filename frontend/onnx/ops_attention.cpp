// Attention and what goes with it.

#include <cmath>
#include <limits>
#include <optional>

#include "base/error.h"
#include "frontend/onnx/attention.h"
#include "frontend/onnx/linear_attention.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/tensor.h"

namespace sylvite {
namespace {

/// Of each query, whether it sees any key, [..., L, 1]; absent where all do.
Sym sees_any(const AttentionInputs& in) {
  if (!in.mask) return {};
  GraphBuilder& b = in.q.builder();
  const Sym mask =
      in.is_causal ? combine(in.mask, causal_mask(b, in.q.dim(2), in.k.dim(2), 0), in.q.dtype()) : in.mask;
  const bool is_flag = mask.dtype() == DType::boolean;
  const Sym largest = reduce(Op::reduce_max, is_flag ? cast(mask, DType::i32) : mask, {mask.rank() - 1});
  const Sym any = apply(Op::greater, largest, is_flag ? 0.0 : -std::numeric_limits<double>::infinity());
  const std::optional<Tensor> known = b.known(any);
  if (!known) return any;
  for (std::int64_t i = 0; i < known->size(); ++i)
    if (known->as_int64(i) == 0) return any;
  return {};
}

/// The formula step by step, for models that ask for the scores as well. `mode`: 0 products, 1 capped, 2 masked, 3 softmax.
Sym explicit_attention(ImportContext& c, const AttentionInputs& in, std::int64_t mode) {
  const DType dtype = in.q.dtype();
  const Sym products = matmul(in.q, swap_axes(in.k, 2, 3)) * in.scale;
  const Sym scores = in.softcap > 0 ? apply(Op::tanh, products / in.softcap) * in.softcap : products;
  Sym masked = in.mask ? scores + additive(in.mask, dtype) : scores;
  if (in.is_causal) masked = masked + additive(causal_mask(c.builder(), in.q.dim(2), in.k.dim(2), 0), dtype);
  const DType precision = dtype_of_onnx(static_cast<int>(c.integer("softmax_precision", 1)));
  const bool has_precision = c.has_attribute("softmax_precision");
  Sym probabilities = cast(softmax(has_precision ? cast(masked, precision) : masked, 3), dtype);
  if (const Sym any = sees_any(in)) probabilities = where(any, probabilities, 0.0);
  const Sym shown[] = {products, scores, masked, probabilities};
  if (mode < 0 || mode > 3) throw ModelError("qk_matmul_output_mode is {}, expected 0 to 3", mode);
  c.output(3, shown[mode]);
  return matmul(probabilities, in.v);
}

/// Which keys each query sees by where it stands, behind `before` others: a number for each row of the batch, [B, 1, 1, 1], or for all.
struct Span {
  std::int64_t left = -1, right = -1;  ///< keys beside its own place; -1: all
  bool is_causal = false;

  [[nodiscard]] bool is_bounded() const { return left >= 0 || right >= 0 || is_causal; }
  /// [B or 1, 1, L, S]. REQUIRES bounds.
  [[nodiscard]] Sym mask(Sym before, std::int64_t queries, std::int64_t keys) const {
    GraphBuilder& b = before.builder();
    const Sym query = b.iota(DType::i64, {1, 1, queries, 1}, 2) + before;
    const Sym key = b.iota(DType::i64, {1, 1, 1, keys}, 3);
    const auto last = is_causal ? std::int64_t{0} : right;
    Sym seen;
    if (last >= 0) seen = apply(Op::less_equal, key, query + static_cast<double>(last));
    if (left < 0) return seen;
    const Sym behind = apply(Op::greater_equal, key, query - static_cast<double>(left));
    return seen ? apply(Op::logical_and, seen, behind) : behind;
  }
};

/// Masks by where queries and keys stand. Keys behind the lengths are no keys, and queries then the last before these.
void hide_by_place(ImportContext& c, AttentionInputs& in, std::int64_t past) {
  GraphBuilder& b = c.builder();
  const std::int64_t queries = in.q.dim(2), keys = in.k.dim(2);
  const Span span{c.integer("left_window_size", -1), c.integer("right_window_size", -1),
                  c.integer("is_causal", 0) != 0};
  Sym lengths = c.optional(6);
  if (lengths) lengths = reshape(cast(lengths, DType::i64), {lengths.size(), 1, 1, 1});
  const bool has_windows = span.left >= 0 || span.right >= 0;
  if (span.is_causal && !has_windows && !lengths && past == 0) {
    in.is_causal = true;
  } else if (span.is_bounded()) {
    const Sym before = lengths && past == 0 ? lengths - static_cast<double>(queries)
                                            : b.scalar(DType::i64, static_cast<double>(past));
    in.mask = combine(in.mask, span.mask(before, queries, keys), in.q.dtype());
  }
  if (!lengths) return;
  const Sym is_real = apply(Op::less, b.iota(DType::i64, {1, 1, 1, keys}, 3), lengths);
  in.mask = combine(in.mask, is_real, in.q.dtype());
}

void attention_op(ImportContext& c) {
  const bool is_packed = c.input(0).rank() == 3;
  AttentionInputs in;
  in.q = split_heads(c.input(0), c.integer("q_num_heads", 0));
  in.k = split_heads(c.input(1), c.integer("kv_num_heads", 0));
  in.v = split_heads(c.input(2), c.integer("kv_num_heads", 0));
  const Sym past_key = c.optional(4);
  const Sym past_value = c.optional(5);
  const std::int64_t past = past_key ? past_key.dim(2) : 0;
  if (past_key) in.k = concat({past_key, in.k}, 2);
  if (past_value) in.v = concat({past_value, in.v}, 2);
  c.output(1, in.k);
  c.output(2, in.v);
  if (const Sym mask = c.optional(3)) in.mask = widen_mask(mask, in.k.dim(2));
  hide_by_place(c, in, past);
  in.k = repeat_heads(in.k, in.q.dim(1));
  in.v = repeat_heads(in.v, in.q.dim(1));
  in.scale = c.real("scale", 1 / std::sqrt(static_cast<double>(in.q.dim(3))));
  in.softcap = c.real("softcap", 0);
  const bool is_simple = !c.wants_output(3) && !c.has_attribute("softmax_precision");
  Sym y;
  if (is_simple) {
    y = core_attention(in);
    if (const Sym any = sees_any(in)) y = where(any, y, 0.0);
  } else {
    y = explicit_attention(c, in, c.integer("qk_matmul_output_mode", 0));
  }
  c.output(0, is_packed ? join_heads(y) : y);
}

/// Scores and probabilities pass through graphs of the model.
void flex_attention(ImportContext& c) {
  const Sym q = c.input(0);
  if (q.rank() != 4) throw ModelError("the query has rank {}, expected 4", q.rank());
  const Sym k = repeat_heads(c.input(1), q.dim(1));
  const Sym v = repeat_heads(c.input(2), q.dim(1));
  DType precision = is_half(q.dtype()) ? DType::f32 : q.dtype();
  if (c.has_attribute("softmax_precision"))
    precision = dtype_of_onnx(static_cast<int>(c.integer("softmax_precision", 1)));
  const double scale = c.real("scale", 1 / std::sqrt(static_cast<double>(q.dim(3))));
  const auto modified = [&](const char* name, Sym value) {
    if (!c.has_attribute(name)) return value;
    const std::vector<Sym> results = c.import_subgraph(c.subgraph(name), {value});
    if (results.size() != 1) throw ModelError("'{}' has {} results, expected 1", name, results.size());
    return results[0];
  };
  Sym scores = cast(matmul(q, swap_axes(k, 2, 3)) * scale, precision);
  scores = cast(modified("score_mod", scores), precision);
  const Sym probabilities = cast(modified("prob_mod", softmax(scores, 3)), precision);
  c.output(cast(matmul(probabilities, cast(v, precision)), v.dtype()));
}

void linear_attention(ImportContext& c) {
  const std::int64_t q_heads = c.required_integer("q_num_heads");
  const std::int64_t heads = c.required_integer("kv_num_heads");
  const std::string rule = c.string("update_rule", "gated_delta");
  const auto steps = [](Sym x, std::int64_t count) {
    return transpose(cast(split_heads(x, count), DType::f32), {2, 0, 1, 3});
  };
  LinearAttention in{steps(c.input(0), q_heads), steps(c.input(1), heads), steps(c.input(2), heads), {}, {}};
  const bool is_gated = rule == "gated" || rule == "gated_delta";
  const bool is_delta = rule == "delta" || rule == "gated_delta";
  if (is_gated) in.decay = steps(c.input(4), heads);
  if (is_delta) in.beta = steps(c.input(5), c.input(5).dim(2));
  const double scale = c.real("scale", 0);
  in.scale = scale == 0 ? 1 / std::sqrt(static_cast<double>(in.q.dim(3))) : scale;
  const Sym past = c.optional(3);
  const Sym state = past ? cast(past, DType::f32)
                         : c.builder().filled(DType::f32, {in.k.dim(1), heads, in.k.dim(3), in.v.dim(3)}, 0);
  const auto [read, last] = linear_recurrence(in, state);
  c.output(0, cast(join_heads(transpose(read, {1, 2, 0, 3})), c.input(0).dtype()));
  c.output(1, cast(last, past ? past.dtype() : c.input(0).dtype()));
}

/// A depthwise convolution over time that sees the past only; the last window is handed on as state.
void causal_conv_with_state(ImportContext& c) {
  const Sym x = c.input(0);
  const Sym w = c.input(1);
  if (x.rank() != 3 || w.rank() != 3) throw ModelError("input and weight must have rank 3");
  const std::int64_t window = w.dim(2);
  const Sym past = c.optional(3);
  const Sym before = past ? past : c.builder().filled(x.dtype(), {x.dim(0), x.dim(1), window - 1}, 0);
  const Sym padded = window == 1 ? x : concat({before, x}, 2);
  std::vector<Sym> inputs{padded, w};
  if (const Sym bias = c.optional(2)) inputs.push_back(bias);
  const Sym y = conv(
      inputs, {{"strides", Dims{1}}, {"pads", Dims{0, 0}}, {"dilations", Dims{1}}, {"groups", x.dim(1)}});
  const std::string activation = c.string("activation", "none");
  c.output(0, activation == "none" ? y : apply(Op::silu, y));
  c.output(1, slice(padded, 2, padded.dim(2) - (window - 1), padded.dim(2)));
}

void rotary_embedding(ImportContext& c) {
  const Sym input = c.input(0);
  const bool is_packed = input.rank() == 3;
  const Sym x = split_heads(input, c.integer("num_heads", 0));  // [B, H, L, D]
  const std::int64_t dim = c.integer("rotary_embedding_dim", 0);
  const auto angles = [&](int i) {
    return c.has_input(3) ? gather(c.input(i), c.input(3), 0) : c.input(i);  // [B, L, D/2]
  };
  const Sym y = rotate(x, angles(1), angles(2), dim == 0 ? x.dim(3) : dim, c.integer("interleaved", 0) != 0);
  c.output(is_packed ? join_heads(y) : y);
}

const OnnxOp attention_rows[] = {
    {"Attention", 23, attention_op},
    {"CausalConvWithState", 27, causal_conv_with_state},
    {"FlexAttention", 1, flex_attention, "ai.onnx.preview"},
    {"LinearAttention", 27, linear_attention},
    {"RotaryEmbedding", 23, rotary_embedding},
};

}  // namespace

std::span<const OnnxOp> onnx_attention_ops() {
  return attention_rows;
}

}  // namespace sylvite
