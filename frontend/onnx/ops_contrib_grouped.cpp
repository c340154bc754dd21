// Attention of com.microsoft with few heads of keys and values, in caches that the operators extend.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.h"
#include "frontend/build/normalization.h"
#include "frontend/onnx/attention.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/refuse.h"
#include "frontend/ops/infer.h"

namespace sylvite {
namespace {

/// Where the new tokens stand: after `known` others, or after `before` others, [B], which the run says.
struct TokenPlace {
  std::optional<std::int64_t> known;
  Sym before;
  std::int64_t tokens = 0;    ///< new ones
  std::int64_t capacity = 0;  ///< of the cache with them
  bool is_kept = false;       ///< the cache stays between runs, and has room for all tokens

  /// Keys that there are at most.
  [[nodiscard]] std::int64_t keys() const { return known ? *known + tokens : capacity; }
};

/// Which inputs say how many tokens there are: of each row, less `beyond`, and of the longest.
struct LengthInputs {
  int of_rows = 5;
  int total = 6;
  std::int64_t beyond = 1;
};

TokenPlace read_place(ImportContext& c, std::int64_t batch, std::int64_t tokens, const LengthInputs& from) {
  const std::int64_t past = c.has_input(3) ? c.input(3).dim(2) : 0;
  const Sym lengths = c.input(from.of_rows);
  if (batch < 1 || lengths.size() != batch)
    throw ModelError("input {} has {} lengths for a batch of {}", from.of_rows, lengths.size(), batch);
  // Of a cache that stays between runs, only where the new tokens stand is for the run to say.
  const bool is_kept = past > 0 && c.is_state(3) && c.is_state(4);
  const bool is_open = is_kept && !c.input(from.total).is_constant();
  const std::int64_t total = is_open ? past : c.constant_integer(from.total);
  if (total < tokens || total > past + tokens)
    throw ModelError("total_sequence_length is {}, expected {} new tokens and up to {} before them", total,
                     tokens, past);
  TokenPlace place;
  place.tokens = tokens;
  place.capacity = std::max(past, total);
  place.is_kept = is_kept && place.capacity == past;
  if (tokens == total && !is_open) {
    place.known = 0;
    return place;
  }
  if (lengths.is_constant()) {
    const std::vector<std::int64_t> values = c.constant_integers(from.of_rows);
    if (std::equal(values.begin() + 1, values.end(), values.begin()))
      place.known = values[0] + from.beyond - tokens;
  }
  if (place.known && (*place.known < 0 || *place.known > past))
    throw ModelError("input {} says that {} tokens stand before, the cache holds {}", from.of_rows,
                     *place.known, past);
  if (!place.known)
    place.before = apply(
        Op::maximum,
        reshape(cast(lengths, DType::i64), {batch, 1}) + static_cast<double>(from.beyond - tokens), 0.0);
  return place;
}

/// The positions of the new tokens, [B or 1, L].
Sym positions(GraphBuilder& b, const TokenPlace& place) {
  const Sym step = b.iota(DType::i64, {1, place.tokens}, 1);
  return place.known ? step + static_cast<double>(*place.known) : place.before + step;
}

/// What the cache holds and then the new tokens, then zeros up to the capacity: or what stands there, in a cache that stays,
/// so that the new tokens alone are written.
Sym extended(Sym past, Sym now, const TokenPlace& place) {
  GraphBuilder& b = now.builder();
  const Dims d = now.dims();
  if (place.known) {
    std::vector<Sym> parts;
    if (*place.known > 0) parts.push_back(slice(past, 2, 0, *place.known));
    parts.push_back(now);
    const std::int64_t rest = place.capacity - place.keys();
    if (rest > 0) parts.push_back(b.filled(now.dtype(), {d[0], d[1], rest, d[3]}, 0));
    return concat(parts, 2);
  }
  if (place.is_kept) {
    const Sym at = reshape(positions(b, place), {place.before.dim(0), 1, place.tokens, 1});
    return b.add(Op::scatter_elements, {past, broadcast_to(at, d), now}, {{"axis", std::int64_t{2}}});
  }
  const Sym all = past ? concat({past, now}, 2) : now;
  const std::int64_t held = all.dim(2) - place.tokens;
  const Sym at = b.iota(DType::i64, {1, 1, place.capacity, 1}, 2);
  const Sym before = unsqueeze(place.before, {1, 3});
  const Sym from = where(apply(Op::less, at, before), at, at - before + static_cast<double>(held));
  const Sym index = broadcast_to(from, {d[0], d[1], place.capacity, d[3]});
  const Sym value = b.add(Op::gather_elements, {all, index}, {{"axis", std::int64_t{2}}});
  return where(apply(Op::less, at, before + static_cast<double>(place.tokens)), value, 0.0);
}

/// Which keys each new token sees, [B or 1, 1, L, S]; absent where it sees all, or all up to itself.
Sym visible(ImportContext& c, const TokenPlace& place, bool is_causal) {
  GraphBuilder& b = c.builder();
  const std::int64_t window = c.integer("local_window_size", -1);
  if (window >= 0 && !is_causal) throw UnsupportedError("local_window_size without causal");
  if (place.known && (*place.known == 0 || !is_causal) && window < 0) return {};
  const Sym key = b.iota(DType::i64, {1, 1, 1, place.keys()}, 3);
  const Sym query = unsqueeze(positions(b, place), {1, 3});
  const Sym last =
      is_causal ? query : unsqueeze(place.before, {1, 3}) + static_cast<double>(place.tokens - 1);
  const Sym keep = apply(Op::less_equal, key, last);
  if (window < 0) return keep;
  return apply(Op::logical_and, keep, apply(Op::greater, key, query - static_cast<double>(window)));
}

struct Projections {
  Sym q, k, v;  ///< [B, H, L, D], keys and values with fewer heads
};

Projections read_projections(ImportContext& c) {
  const std::int64_t heads = c.required_integer("num_heads");
  const std::int64_t kv_heads = c.required_integer("kv_num_heads");
  if (heads < 1 || kv_heads < 1 || heads > extent_limit || kv_heads > extent_limit || heads % kv_heads != 0)
    throw ModelError("num_heads is {} and kv_num_heads {}, expected a multiple", heads, kv_heads);
  Sym q = c.input(0);
  Sym k = c.optional(1);
  Sym v = c.optional(2);
  if (q.rank() != 3) throw ModelError("the query has rank {}, expected 3", q.rank());
  if (!k != !v) throw ModelError("key and value belong together, one of them is missing");
  if (!k) {
    const std::int64_t size = q.dim(2) / (heads + 2 * kv_heads);
    if (size * (heads + 2 * kv_heads) != q.dim(2))
      throw ModelError("{} columns do not hold {} heads", q.dim(2), heads + 2 * kv_heads);
    const std::vector<Sym> parts = split(q, 2, {heads * size, kv_heads * size, kv_heads * size});
    q = parts[0];
    k = parts[1];
    v = parts[2];
  }
  if (k.rank() != 3 || v.rank() != 3 || k.dim(1) != q.dim(1) || v.dim(1) != q.dim(1))
    throw ModelError("keys and values are not of as many tokens as the query, {}", q.dim(1));
  return {split_heads(q, heads), split_heads(k, kv_heads), split_heads(v, kv_heads)};
}

/// By the angles at these positions, whose cosines and sines are tables.
void rotate_heads(ImportContext& c, Projections& in, Sym cosines, Sym sines, Sym at) {
  const bool is_interleaved = c.integer("rotary_interleaved", 0) != 0;
  const Sym cosine = gather(cosines, at, 0);
  const Sym sine = gather(sines, at, 0);
  if (cosine.rank() != 3) throw ModelError("the angles have rank {}, expected 3", cosine.rank());
  in.q = rotate(in.q, cosine, sine, 2 * cosine.dim(2), is_interleaved);
  in.k = rotate(in.k, cosine, sine, 2 * cosine.dim(2), is_interleaved);
}

/// Norms of each head of queries and keys, then their rotation.
void prepare_heads(ImportContext& c, const TokenPlace& place, Projections& in) {
  if (const Sym scale = c.optional(14)) {
    const double epsilon = c.real("qk_norm_epsilon", 1e-6);
    in.q = rms_norm(in.q, scale, 3, c.real("q_norm_epsilon", epsilon));
    in.k = rms_norm(in.k, c.input(15), 3, c.real("k_norm_epsilon", epsilon));
  }
  if (c.integer("do_rotary", 0) == 0) {
    (void)c.integer("rotary_interleaved", 0);
    for (const int i : {7, 8, 9}) (void)c.has_input(i);
    return;
  }
  Sym at = positions(c.builder(), place);
  if (const Sym given = c.optional(9)) {
    // For the first tokens only the first number counts.
    const bool is_first = place.known && *place.known == 0;
    at = is_first ? at + cast(slice(reshape(given, {given.size()}), 0, 0, 1), DType::i64) : given;
  }
  rotate_heads(c, in, c.input(7), c.input(8), at);
}

/// With a score per head that takes its share of the softmax and gives nothing.
Sym attention_with_sink(const AttentionInputs& in, Sym sink) {
  GraphBuilder& b = in.q.builder();
  const DType dtype = in.q.dtype();
  Sym scores = matmul(in.q, swap_axes(in.k, 2, 3)) * in.scale;
  if (in.softcap > 0) scores = apply(Op::tanh, scores / in.softcap) * in.softcap;
  if (in.is_causal) scores = scores + additive(causal_mask(b, in.q.dim(2), in.k.dim(2), 0), dtype);
  if (in.mask) scores = scores + additive(in.mask, dtype);
  const Sym column = broadcast_to(sink, {scores.dim(0), scores.dim(1), scores.dim(2), 1});
  const Sym shares = softmax(concat({scores, column}, 3), 3);
  return matmul(slice(shares, 3, 0, scores.dim(3)), in.v);
}

void refuse_the_rest(ImportContext& c) {
  refuse_attributes(c, {"sliding_window_cache", "qk_output", "kv_cache_bit_width"});
  for (const char* name : {"k_quant_type", "v_quant_type"})
    if (c.string(name, "NONE") != "NONE")
      throw UnsupportedError("attribute '{}' is '{}': caches are supported as floats only", name,
                             c.string(name, ""));
  refuse_input(c, 12, "k_scale");
  refuse_input(c, 13, "v_scale");
  refuse_input(c, 16, "query_seqlens");
}

void check_caches(ImportContext& c) {
  for (const int i : {3, 4})
    if (c.has_input(i) && (c.input(i).rank() != 4 || c.input(i).dim(2) != c.input(3).dim(2)))
      throw ModelError("input {} is no cache of [batch, heads, length, size]", i);
}

/// Of the new tokens on all keys; the caches with them are outputs 1 and 2.
AttentionInputs extend_caches(ImportContext& c, const Projections& in, const TokenPlace& place) {
  const Sym k = extended(c.optional(3), in.k, place);
  const Sym v = extended(c.optional(4), in.v, place);
  c.output(1, k);
  c.output(2, v);
  AttentionInputs attention;
  attention.q = in.q;
  attention.k = slice(k, 2, 0, place.keys());
  attention.v = slice(v, 2, 0, place.keys());
  const double scale = c.real("scale", 0);
  attention.scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(in.q.dim(3)));
  return attention;
}

void group_query_attention(ImportContext& c) {
  refuse_the_rest(c);
  GraphBuilder& b = c.builder();
  Projections in = read_projections(c);
  check_caches(c);
  const TokenPlace place = read_place(c, in.q.dim(0), in.q.dim(2), {});
  prepare_heads(c, place, in);
  AttentionInputs attention = extend_caches(c, in, place);
  const bool is_causal = c.integer("causal", 1) != 0;
  attention.mask = visible(c, place, is_causal);
  attention.is_causal = is_causal && !attention.mask;
  if (const Sym bias = c.optional(10)) {
    const Sym fitting = bias.dim(-1) > place.keys() ? slice(bias, bias.rank() - 1, 0, place.keys())
                                                    : widen_mask(bias, place.keys());
    attention.mask = combine(attention.mask, fitting, in.q.dtype());
  }
  attention.softcap = c.real("softcap", 0);
  Sym sink = c.optional(11);
  if (sink) sink = reshape(sink, {1, sink.size(), 1, 1});
  if (c.integer("smooth_softmax", -1) > 0 && !sink) sink = b.scalar(in.q.dtype(), 0);
  if (sink) {
    attention.k = repeat_heads(attention.k, in.q.dim(1));
    attention.v = repeat_heads(attention.v, in.q.dim(1));
  }
  c.output(0, join_heads(sink ? attention_with_sink(attention, sink) : grouped_attention(attention)));
}

/// [layouts, blocks, blocks]: which blocks of keys (last) each block of queries sees, from the lists of a compressed matrix.
Sym read_blocks(ImportContext& c) {
  const Tensor ends = c.constant(5), columns = c.constant(6);
  if (ends.dims().size() != 2 || columns.dims().size() != 2 || ends.dims()[1] < 2 ||
      columns.dims()[0] != ends.dims()[0])
    throw ModelError("block_row_indices and block_col_indices are no matrices of as many rows");
  const std::int64_t layouts = ends.dims()[0], blocks = ends.dims()[1] - 1, most = columns.dims()[1];
  c.builder().reserve_table({layouts, blocks, blocks});
  Tensor mask(DType::boolean, {layouts, blocks, blocks});
  for (std::int64_t row = 0; row < layouts * blocks; ++row) {
    const std::int64_t layout = row / blocks;
    const std::int64_t first = ends.as_int64(row + layout), last = ends.as_int64(row + layout + 1);
    if (first < 0 || last < first || last > most)
      throw ModelError("block_row_indices leave a list of {} columns", most);
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t column = columns.as_int64(layout * most + i);
      if (column < 0 || column >= blocks)
        throw ModelError("block_col_indices have {}, there are {} blocks", column, blocks);
      mask.set_int64(row * blocks + column, 1);
    }
  }
  return c.builder().constant(mask);
}

/// Which keys each new token sees in each head, [B or 1, H, L, S].
Sym visible_blocks(ImportContext& c, const TokenPlace& place, std::int64_t heads) {
  GraphBuilder& b = c.builder();
  const std::int64_t size = c.required_integer("sparse_block_size");
  const Sym blocks = read_blocks(c);
  const std::int64_t layouts = blocks.dim(0);
  if (size < 1 || (place.keys() + size - 1) / size > blocks.dim(1))
    throw ModelError("{} blocks of {} do not hold {} keys", blocks.dim(1), size, place.keys());
  if (layouts < 1 || heads % layouts != 0) throw ModelError("{} layouts for {} heads", layouts, heads);
  const Sym at = positions(b, place);  // [B or 1, L]
  const auto of_block = [&](Sym x) {
    return apply(Op::div, x, b.scalar(DType::i64, static_cast<double>(size)));
  };
  const Sym key = b.iota(DType::i64, {place.keys()}, 0);
  const Sym rows = gather(blocks, of_block(at), 1);                          // [layouts, B, L, blocks]
  const Sym seen = transpose(gather(rows, of_block(key), 3), {1, 0, 2, 3});  // [B, layouts, L, S]
  const Dims d = seen.dims();
  const Sym repeated = broadcast_to(unsqueeze(seen, {1}), {d[0], heads / layouts, d[1], d[2], d[3]});
  return apply(Op::logical_and, reshape(repeated, {d[0], heads, d[2], d[3]}),
               apply(Op::less_equal, reshape(key, {1, 1, 1, place.keys()}), unsqueeze(at, {1, 3})));
}

void sparse_attention(ImportContext& c) {
  Projections in = read_projections(c);
  check_caches(c);
  const TokenPlace place = read_place(c, in.q.dim(0), in.q.dim(2), {.of_rows = 8, .total = 7, .beyond = 0});
  const bool is_rotated = c.integer("do_rotary", 0) != 0;
  if (is_rotated) rotate_heads(c, in, c.input(9), c.input(10), positions(c.builder(), place));
  if (!is_rotated)
    for (const int i : {9, 10}) (void)c.has_input(i);
  (void)c.integer("rotary_interleaved", 0);
  AttentionInputs attention = extend_caches(c, in, place);
  attention.mask = visible_blocks(c, place, in.q.dim(1));
  c.output(0, join_heads(grouped_attention(attention)));
}

const OnnxOp contrib_grouped_rows[] = {
    {"GroupQueryAttention", 1, group_query_attention, microsoft},
    {"SparseAttention", 1, sparse_attention, microsoft},
};

}  // namespace

std::span<const OnnxOp> onnx_contrib_grouped_ops() {
  return contrib_grouped_rows;
}

}  // namespace sylvite
