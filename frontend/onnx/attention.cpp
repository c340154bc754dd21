#include "frontend/onnx/attention.h"

#include <limits>

#include "base/error.h"

namespace sylvite {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

}  // namespace

Sym split_heads(Sym x, std::int64_t heads) {
  if (x.rank() == 4) return x;
  if (x.rank() != 3) throw ModelError("an input has rank {}, expected 3 or 4", x.rank());
  if (heads < 1 || x.dim(2) % heads != 0) throw ModelError("{} heads do not divide {}", heads, x.dim(2));
  return transpose(reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

Sym join_heads(Sym x) {
  return reshape(transpose(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

Sym repeat_heads(Sym x, std::int64_t heads) {
  const Dims d = x.dims();
  if (d.size() != 4) throw ModelError("keys and values have rank {}, expected 4", d.size());
  if (d[1] == heads) return x;
  if (d[1] == 0 || heads % d[1] != 0) throw ModelError("{} query heads are no multiple of {}", heads, d[1]);
  const Sym repeated =
      broadcast_to(reshape(x, {d[0], d[1], 1, d[2], d[3]}), {d[0], d[1], heads / d[1], d[2], d[3]});
  return reshape(repeated, {d[0], heads, d[2], d[3]});
}

Sym additive(Sym mask, DType dtype) {
  if (mask.dtype() != DType::boolean) return mask;
  GraphBuilder& b = mask.builder();
  return where(mask, b.scalar(dtype, 0), b.scalar(dtype, minus_infinity));
}

Sym combine(Sym a, Sym b, DType dtype) {
  if (!a) return b;
  if (a.dtype() == DType::boolean && b.dtype() == DType::boolean) return apply(Op::logical_and, a, b);
  return additive(a, dtype) + additive(b, dtype);
}

Sym causal_mask(GraphBuilder& b, std::int64_t queries, std::int64_t keys, std::int64_t past) {
  const Sym row = b.iota(DType::i64, {queries, 1}, 0) + static_cast<double>(past);
  return apply(Op::less_equal, b.iota(DType::i64, {1, keys}, 1), row);
}

Sym widen_mask(Sym mask, std::int64_t keys) {
  const std::int64_t missing = keys - mask.dim(-1);
  if (missing <= 0) return mask;
  Dims low(static_cast<std::size_t>(mask.rank()), 0);
  Dims high = low;
  high.back() = missing;
  return pad(mask, low, high, mask.dtype() == DType::boolean ? 0 : minus_infinity);
}

Sym grouped_attention(AttentionInputs in) {
  const Dims q = in.q.dims();
  const std::int64_t heads = in.k.dim(1);
  const bool is_shared = !in.mask || (in.mask.rank() == 4 && in.mask.dim(1) == 1);
  const bool has_groups = heads > 0 && q[1] % heads == 0 && q[1] > heads;
  if (!has_groups || q[2] != 1 || !is_shared || in.is_causal) {
    in.k = repeat_heads(in.k, q[1]);
    in.v = repeat_heads(in.v, q[1]);
    return core_attention(in);
  }
  in.q = reshape(in.q, {q[0], heads, q[1] / heads, q[3]});
  return reshape(core_attention(in), {q[0], q[1], 1, in.v.dim(3)});
}

Sym core_attention(const AttentionInputs& in) {
  std::vector<Sym> inputs{in.q, in.k, in.v};
  if (in.mask) inputs.push_back(in.mask);
  return in.q.builder().add(
      Op::attention, inputs,
      {{"scale", in.scale}, {"causal", std::int64_t{in.is_causal}}, {"softcap", in.softcap}});
}

Sym rotate(Sym x, Sym cosine, Sym sine, std::int64_t rotated, bool is_interleaved) {
  if (x.rank() != 4) throw ModelError("what is rotated has rank {}, expected 4", x.rank());
  if (rotated < 2 || rotated > x.dim(3) || rotated % 2 != 0)
    throw ModelError("{} of {} elements are rotated, expected pairs", rotated, x.dim(3));
  for (const Sym& angles : {cosine, sine})
    if (angles.rank() < 2 || angles.dim(angles.rank() - 1) != rotated / 2)
      throw ModelError("angles have the shape {}, expected [..., length, {}]",
                       fmt::format("[{}]", fmt::join(angles.dims(), ",")), rotated / 2);
  // The other element of each pair stands beside it, or half of them away: a view that turns an axis of two around.
  const Sym part = rotated < x.dim(3) ? slice(x, 3, 0, rotated) : x;
  const std::int64_t half = rotated / 2;
  const int axis = is_interleaved ? 4 : 3;
  const Dims pairs = is_interleaved ? Dims{x.dim(0), x.dim(1), x.dim(2), half, 2}
                                    : Dims{x.dim(0), x.dim(1), x.dim(2), 2, half};
  const Sym other = reshape(flip(reshape(part, pairs), axis), part.dims());
  const auto of_pairs = [&](Sym first, Sym second) {
    Dims dims = first.dims();
    dims.back() = rotated;
    const int at = first.rank() - (is_interleaved ? 0 : 1);
    return unsqueeze(reshape(concat({unsqueeze(first, {at}), unsqueeze(second, {at})}, at), dims), {1});
  };
  const Sym y = part * of_pairs(cosine, cosine) + other * of_pairs(-sine, sine);
  return rotated < x.dim(3) ? concat({y, slice(x, 3, rotated, x.dim(3))}, 3) : y;
}

}  // namespace sylvite
