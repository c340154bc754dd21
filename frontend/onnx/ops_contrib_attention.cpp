// Attention of com.microsoft, where projections, masks and caches are inputs of one operator.

#include <cmath>

#include "base/error.h"
#include "frontend/onnx/attention.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/quantization.h"
#include "frontend/onnx/refuse.h"

namespace sylvite {
namespace {

/// What is left to say once queries, keys and values are there, with the keys and values before them.
struct Masks {
  Sym keep;               ///< boolean, broadcastable to [B, H, L, S], or absent
  Sym bias;               ///< added to the scores, or absent
  std::int64_t past = 0;  ///< keys that stand before the queries
};

/// Whether the sizes, none of them negative, add up to `total`.
bool add_up(const Dims& sizes, std::int64_t total) {
  for (const std::int64_t size : sizes) {
    if (size < 0 || size > total) return false;
    total -= size;
  }
  return total == 0;
}

/// The keys that a mask input keeps: lengths [B], ends and starts [2 B], or flags [B, S] or [B, L, S].
Sym kept_keys(Sym mask, std::int64_t batch, std::int64_t keys) {
  if (!mask) return mask;
  if (mask.rank() == 1) {
    if (mask.size() != batch && mask.size() != 2 * batch)
      throw UnsupportedError("a mask of {} numbers for a batch of {}; {} or {} are supported", mask.size(),
                             batch, batch, 2 * batch);
    const Sym position = mask.builder().iota(mask.dtype(), {1, 1, 1, keys}, 3);
    const auto bounds = [&](std::int64_t from) {
      return reshape(slice(mask, 0, from, from + batch), {batch, 1, 1, 1});
    };
    const Sym before_end = apply(Op::less, position, bounds(0));
    if (mask.size() == batch) return before_end;
    return apply(Op::logical_and, before_end, apply(Op::greater_equal, position, bounds(batch)));
  }
  if (mask.rank() > 3) throw UnsupportedError("a mask of rank {}; up to 3 is supported", mask.rank());
  if (mask.rank() == 0 || mask.dim(-1) != keys)
    throw ModelError("the mask has {} columns for {} keys", mask.rank() == 0 ? 0 : mask.dim(-1), keys);
  const Sym flags = apply(Op::greater, mask, 0.0);
  return mask.rank() == 2 ? unsqueeze(flags, {1, 2}) : unsqueeze(flags, {1});
}

/// q, k and v of [B, H, L or S, D] -> [B, L, H D]. Reads the attributes that all these operators have.
Sym attend(ImportContext& c, Sym q, Sym k, Sym v, const Masks& masks) {
  GraphBuilder& b = c.builder();
  const DType dtype = q.dtype();
  AttentionInputs in{q, k, v, masks.bias};
  const double filter = c.real("mask_filter_value", -10000);
  if (masks.keep) in.mask = combine(in.mask, where(masks.keep, b.scalar(dtype, 0), filter), dtype);
  in.is_causal = c.integer("unidirectional", 0) != 0;
  if (in.is_causal && masks.past > 0) {
    in.mask = combine(in.mask, causal_mask(b, q.dim(2), k.dim(2), masks.past), dtype);
    in.is_causal = false;
  }
  const double scale = c.real("scale", 0);
  in.scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(q.dim(3)));
  return join_heads(core_attention(in));
}

/// Attention and QAttention from their projection [B, L, Q + K + V]; the inputs that they number differently
/// are given.
void self_attention(ImportContext& c, Sym qkv, Sym mask, Sym past, Sym bias) {
  refuse_attributes(c, {"do_rotary", "past_present_share_buffer"});
  (void)c.has_attribute("rotary_embedding_dim");  // only with do_rotary
  if (qkv.rank() != 3) throw ModelError("the projection has rank {}, expected 3", qkv.rank());
  const std::int64_t width = qkv.dim(2);
  Dims sizes = c.integers("qkv_hidden_sizes");
  if (sizes.empty()) sizes = Dims(3, width / 3);
  if (sizes.size() != 3 || !add_up(sizes, width))
    throw ModelError("{} columns cannot be split into queries, keys and values of [{}]", width,
                     fmt::join(sizes, ","));
  const std::vector<Sym> parts = split(qkv, 2, sizes);
  const std::int64_t heads = c.required_integer("num_heads");
  const Sym q = split_heads(parts[0], heads);
  Sym k = split_heads(parts[1], heads);
  Sym v = split_heads(parts[2], heads);
  Masks masks;
  if (past) {
    if (past.rank() != 5 || past.dim(0) != 2)
      throw ModelError("past is no [2, batch, heads, length, size], but of rank {}", past.rank());
    masks.past = past.dim(3);
    k = concat({squeeze(slice(past, 0, 0, 1), {0}), k}, 2);
    v = concat({squeeze(slice(past, 0, 1, 2), {0}), v}, 2);
  }
  if (c.wants_output(1)) c.output(1, concat({unsqueeze(k, {0}), unsqueeze(v, {0})}, 0));
  masks.keep = kept_keys(mask, q.dim(0), k.dim(2));
  masks.bias = bias;
  c.output(0, attend(c, q, k, v, masks));
}

void attention(ImportContext& c) {
  refuse_input(c, 6, "past_sequence_length");
  Sym qkv = matmul(c.input(0), c.input(1));
  if (const Sym bias = c.optional(2)) qkv = qkv + bias;
  self_attention(c, qkv, c.optional(3), c.optional(4), c.optional(5));
}

void quantized_attention(ImportContext& c) {
  const auto whole = [](Sym x) { return x && x.size() == 1 ? reshape(x, {}) : x; };
  const Sym x = dequantize(c.input(0), whole(c.input(3)), whole(c.optional(6)));
  const Sym weight = dequantize(c.input(1), whole(c.input(4)), whole(c.optional(7)));
  self_attention(c, matmul(x, weight) + c.input(2), c.optional(5), c.optional(8), Sym());
}

/// Part `index` of [B, L, H, parts, D] as [B, H, L, D].
Sym one_of_packed(Sym packed, std::int64_t index) {
  return transpose(squeeze(slice(packed, 3, index, index + 1), {3}), {0, 2, 1, 3});
}

/// The heads of one of query, key and value, once its part of the bias, if there is one, is added.
Sym biased_heads(Sym x, Sym bias, std::int64_t heads) {
  if (x.rank() == 3) return split_heads(bias ? x + bias : x, heads);
  return bias ? x + reshape(bias, {x.dim(1), 1, x.dim(3)}) : x;
}

struct Heads {
  Sym q, k, v;  ///< [B, H, L or S, D]
};

/// Query, key and value as three inputs, or packed into the first or the second.
Heads read_heads(ImportContext& c) {
  const std::int64_t heads = c.required_integer("num_heads");
  Sym q = c.input(0);
  Sym k = c.optional(1);
  Sym v = c.optional(2);
  if (q.rank() == 5) {
    if (k || v || q.dim(3) != 3) throw ModelError("the packed query holds no keys and values, or not alone");
    v = one_of_packed(q, 2);
    k = one_of_packed(q, 1);
    q = one_of_packed(q, 0);
  } else if (k && k.rank() == 5) {
    if (v || k.dim(3) != 2) throw ModelError("the packed key holds no values, or not alone");
    v = one_of_packed(k, 1);
    k = one_of_packed(k, 0);
  }
  if (!k || !v) throw ModelError("keys and values are missing");
  const Sym bias = c.optional(3);
  if (!bias)
    return {biased_heads(q, bias, heads), biased_heads(k, bias, heads), biased_heads(v, bias, heads)};
  if (c.has_input(1) && c.input(1).rank() == 4)
    throw UnsupportedError("input 3, 'bias', beside keys that have their heads apart");
  const auto width = [](Sym x) { return x.rank() == 3 ? x.dim(2) : x.dim(1) * x.dim(3); };
  const Dims sizes{width(q), width(k), width(v)};
  if (!add_up(sizes, bias.size()))
    throw ModelError("the bias has {} elements, expected those of [{}]", bias.size(), fmt::join(sizes, ","));
  const std::vector<Sym> parts = split(bias, 0, sizes);
  return {biased_heads(q, parts[0], heads), biased_heads(k, parts[1], heads),
          biased_heads(v, parts[2], heads)};
}

void multi_head_attention(ImportContext& c) {
  refuse_input(c, 8, "past_sequence_length");
  refuse_input(c, 9, "cache_indirection");
  Heads in = read_heads(c);
  Masks masks;
  if (c.has_input(6) != c.has_input(7))
    throw ModelError("past_key and past_value belong together, one of them is missing");
  if (const Sym past = c.optional(6)) {
    if (past.rank() != 4) throw ModelError("past_key has rank {}, expected 4", past.rank());
    masks.past = past.dim(2);
    in.k = concat({past, in.k}, 2);
    in.v = concat({c.input(7), in.v}, 2);
  }
  c.output(1, in.k);
  c.output(2, in.v);
  masks.keep = kept_keys(c.optional(4), in.q.dim(0), in.k.dim(2));
  masks.bias = c.optional(5);
  c.output(0, attend(c, in.q, in.k, in.v, masks));
}

/// Query, key and value of one token, [B, 1, H D], with their bias; keys and values that are not of this token have their
/// heads apart, [B, H, S, D], and no bias.
Heads read_token(ImportContext& c, std::int64_t heads) {
  if (!c.has_input(1) || !c.has_input(2)) throw UnsupportedError("keys and values packed into the query");
  std::vector<Sym> parts{c.input(0), c.input(1), c.input(2)};
  const Sym bias = c.optional(10);
  std::int64_t at = 0;
  for (Sym& part : parts) {
    if (!bias || part.rank() != 3) continue;
    const std::int64_t end = at + part.dim(2);
    if (end > bias.size()) throw ModelError("the bias has {} elements, {} are read", bias.size(), end);
    part = part + slice(bias, 0, at, end);
    at = end;
  }
  return {split_heads(parts[0], heads), split_heads(parts[1], heads), split_heads(parts[2], heads)};
}

/// One token after those before it, which lie in a buffer with room for more, whose used length is given.
void masked_attention_of_token(ImportContext& c) {
  refuse_attributes(c, {"output_qk"});
  refuse_input(c, 8, "beam_width");
  refuse_input(c, 9, "cache_indirection");
  Heads in = read_token(c, c.required_integer("num_heads"));
  Masks masks;
  Sym mask = c.optional(3);
  const bool has_buffer = c.integer("past_present_share_buffer", 0) != 0;
  const Sym length = c.optional(7);
  if (const Sym past = c.optional(5)) {
    if (!has_buffer) throw UnsupportedError("past_present_share_buffer is supported as 1 only");
    if (!length || length.size() != 1) throw ModelError("past_sequence_length is missing or no number");
    const Sym place = c.builder().iota(DType::i64, {1, 1, past.dim(2), 1}, 2);
    const Sym end = reshape(cast(length, DType::i64), {});
    in.k = where(apply(Op::equal, place, end), in.k, past);
    in.v = where(apply(Op::equal, place, end), in.v, c.input(6));
    masks.keep = swap_axes(apply(Op::less_equal, place, end), 2, 3);
    if (mask) mask = pad(mask, {0, 0}, {0, past.dim(2) - mask.dim(1)});
  }
  c.output(1, in.k);
  c.output(2, in.v);
  const Sym kept = kept_keys(mask, in.q.dim(0), in.k.dim(2));
  if (kept) masks.keep = masks.keep ? apply(Op::logical_and, masks.keep, kept) : kept;
  masks.bias = c.optional(4);
  c.output(0, attend(c, in.q, in.k, in.v, masks));
}

/// The number of heads, given or from the width that is rotated.
std::int64_t rotary_heads(ImportContext& c, Sym input, std::int64_t rotated) {
  const std::int64_t heads = c.integer("num_heads", 0);
  return heads == 0 && input.rank() == 3 && rotated > 0 ? input.dim(2) / rotated : heads;
}

/// Positions are given per token, or as that of the first one.
void rotary_embedding_by_position(ImportContext& c) {
  refuse_attributes(c, {"is_packed_batching"});
  if (c.real("scale", 1) != 1) throw UnsupportedError("attribute 'scale' is supported as 1 only");
  const Sym input = c.input(0);
  const Sym cosine = c.input(2);
  if (cosine.rank() != 2) throw ModelError("cos_cache has rank {}, expected 2", cosine.rank());
  const std::int64_t dim = c.integer("rotary_embedding_dim", 0);
  const std::int64_t rotated = 2 * cosine.dim(1);
  if (dim != 0 && dim != rotated)
    throw ModelError("rotary_embedding_dim is {}, but cos_cache is for {}", dim, rotated);
  const Sym x = split_heads(input, rotary_heads(c, input, rotated));
  Sym at = cast(c.input(1), DType::i64);
  if (at.rank() == 1) at = at + c.builder().iota(DType::i64, {1, x.dim(2)}, 1);
  const Sym y =
      rotate(x, gather(cosine, at, 0), gather(c.input(3), at, 0), rotated, c.integer("interleaved", 0) != 0);
  c.output(input.rank() == 3 ? join_heads(y) : y);
}

/// Of time, height and width: the columns of the tables that each of the latter two gives, as booleans.
std::vector<Sym> columns_of_streams(ImportContext& c, std::int64_t columns) {
  const std::vector<std::int64_t> sections = c.integers("mrope_section");
  const bool is_interleaved = c.integer("mrope_layout", 0) != 0;
  if (sections.size() != 3 || !add_up(sections, columns))
    throw ModelError("mrope_section is [{}], expected three numbers that add up to {}",
                     fmt::join(sections, ","), columns);
  std::vector<Sym> masks;
  std::int64_t first = sections[0];
  for (const std::int64_t stream : {1, 2}) {
    const std::int64_t count = sections[static_cast<std::size_t>(stream)];
    Tensor mask(DType::boolean, {columns});
    for (std::int64_t i = 0; i < columns; ++i)
      mask.set_int64(i, is_interleaved ? i % 3 == stream && i < 3 * count : i >= first && i < first + count);
    first += count;
    masks.push_back(c.builder().constant(mask));
  }
  return masks;
}

/// Each token has three positions: of time, height and width, of which each gives some columns.
void multimodal_rotary_embedding(ImportContext& c) {
  refuse_attributes(c, {"is_packed_batching"});
  if (c.real("scale", 1) != 1) throw UnsupportedError("attribute 'scale' is supported as 1 only");
  (void)c.integer("rotary_embedding_dim", 0);
  const Sym input = c.input(0);
  const Sym at = cast(c.input(1), DType::i64);
  const Sym cosine = c.input(2);
  if (at.rank() != 3 || at.dim(0) != 3 || cosine.rank() != 2)
    throw ModelError("position_ids have rank {} and cos_cache has rank {}", at.rank(), cosine.rank());
  const std::vector<Sym> masks = columns_of_streams(c, cosine.dim(1));
  const auto chosen = [&](Sym table) {
    const Sym all = gather(table, at, 0);  // [3, B, L, columns]
    const auto stream = [&](std::int64_t i) { return squeeze(slice(all, 0, i, i + 1), {0}); };
    return where(masks[0], stream(1), where(masks[1], stream(2), stream(0)));
  };
  const std::int64_t rotated = 2 * cosine.dim(1);
  const Sym x = split_heads(input, rotary_heads(c, input, rotated));
  const Sym y = rotate(x, chosen(cosine), chosen(c.input(3)), rotated, c.integer("interleaved", 0) != 0);
  c.output(input.rank() == 3 ? join_heads(y) : y);
}

/// Queries and keys come with their halves exchanged already.
void gemma_rotary_embedding(ImportContext& c) {
  const Sym angles = unsqueeze(c.input(0), {1});
  const auto turned = [&](int i) {
    const Sym x = c.input(i);
    return x * cast(apply(Op::cos, angles), x.dtype()) +
           c.input(i + 1) * cast(apply(Op::sin, angles), x.dtype());
  };
  c.output(0, turned(1));
  c.output(1, turned(3));
}

const OnnxOp contrib_attention_rows[] = {
    {"Attention", 1, attention, microsoft},
    {"DecoderMaskedMultiHeadAttention", 1, masked_attention_of_token, microsoft},
    {"GemmaRotaryEmbedding", 1, gemma_rotary_embedding, microsoft},
    {"MRotaryEmbedding", 1, multimodal_rotary_embedding, microsoft},
    {"MultiHeadAttention", 1, multi_head_attention, microsoft},
    {"QAttention", 1, quantized_attention, microsoft},
    {"RotaryEmbedding", 1, rotary_embedding_by_position, microsoft},
};

}  // namespace

std::span<const OnnxOp> onnx_contrib_attention_ops() {
  return contrib_attention_rows;
}

}  // namespace sylvite
