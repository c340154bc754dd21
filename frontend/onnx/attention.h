#pragma once
// What all spellings of attention share. B: batch, H: heads, L: queries, S: keys, D: elements of a head.

#include "frontend/graph/graph_builder.h"

namespace sylvite {

/// [B, L, H*D] -> [B, H, L, D]; rank 4 passes. Throws ModelError when the heads do not fit.
[[nodiscard]] Sym split_heads(Sym x, std::int64_t heads);
/// [B, H, L, D] -> [B, L, H*D].
[[nodiscard]] Sym join_heads(Sym x);
/// Each head of keys and values, [B, H', S, D], serves heads / H' neighbouring query heads.
[[nodiscard]] Sym repeat_heads(Sym x, std::int64_t heads);

/// A mask as numbers to add: a boolean one becomes 0 where it is true, and minus infinity elsewhere.
[[nodiscard]] Sym additive(Sym mask, DType dtype);
/// Both masks together; `a` may be absent. Boolean masks stay boolean.
[[nodiscard]] Sym combine(Sym a, Sym b, DType dtype);
/// [queries, keys]: true where query l, standing after `past` keys, may see key s.
[[nodiscard]] Sym causal_mask(GraphBuilder& b, std::int64_t queries, std::int64_t keys, std::int64_t past);
/// A mask for fewer keys than there are hides the rest.
[[nodiscard]] Sym widen_mask(Sym mask, std::int64_t keys);

struct AttentionInputs {
  Sym q, k, v, mask;  ///< [B, H, L, D], [B, H, S, D], [B, H, S, Dv], broadcastable to [B, H, L, S] or absent
  double scale = 0, softcap = 0;
  bool is_causal = false;  ///< beyond what the mask says
};

/// The core operation, [B, H, L, Dv].
[[nodiscard]] Sym core_attention(const AttentionInputs& in);
/// The same of keys and values of fewer heads, [B, H', S, D]. Of one query, the heads that share keys are rows of one
/// product.
[[nodiscard]] Sym grouped_attention(AttentionInputs in);

/// x of [B, H, L, D] with its first `rotated` elements taken as pairs (halves, or neighbours when interleaved)
/// and each pair turned by the angle whose cosine and sine are given, [B or 1, L, rotated / 2].
[[nodiscard]] Sym rotate(Sym x, Sym cosine, Sym sine, std::int64_t rotated, bool is_interleaved);

}  // namespace sylvite
