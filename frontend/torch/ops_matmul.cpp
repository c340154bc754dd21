// Products of matrices, and attention.

#include <cmath>
#include <limits>

#include "frontend/build/normalization.h"
#include "frontend/torch/torch_ops.h"

namespace sylvite {
namespace {

/// Factors keep their digits: what is multiplied by one is of f32 at least.
Sym scaled_by(TorchContext& c, Sym x, std::string_view name) {
  if (c.real(name, 1) == 1) return x;
  const bool is_short = is_half(x.dtype());
  return (is_short ? cast(x, DType::f32) : x) * c.real(name);
}

void product(TorchContext& c) {
  c.output(matmul(c.tensor("self"), c.tensor("mat2")));
}

/// beta self + alpha mat1 mat2
void add_product(TorchContext& c) {
  const Sym product = scaled_by(c, matmul(c.tensor("mat1"), c.tensor("mat2")), "alpha");
  const DType type = c.result_dtype();
  if (c.real("beta", 1) == 0) return c.ignore("self"), c.output(cast(product, type));
  const Sym self = scaled_by(c, c.tensor("self"), "beta");
  const DType wide = product.dtype() == self.dtype() ? self.dtype() : DType::f32;
  c.output(cast(cast(product, wide) + cast(self, wide), type));
}

/// [..., heads, length, depth] with every head repeated.
Sym repeat_heads(Sym x, std::int64_t times) {
  if (times == 1) return x;
  Dims wide = x.dims();
  wide.insert(wide.end() - 2, times);
  Dims joined = x.dims();
  joined[joined.size() - 3] *= times;
  return reshape(broadcast_to(unsqueeze(x, {x.rank() - 2}), wide), joined);
}

/// To be added, or true where a key is seen; none where there is none.
Sym mask_of(TorchContext& c, Sym q) {
  const Sym mask = c.optional("attn_mask");
  return !mask || mask.dtype() == DType::boolean ? mask : cast(mask, q.dtype());
}

/// Torch's attention is zero in rows that see no key; Op::attention divides by zero there.
Sym with_empty_rows_zero(Sym result, Sym mask) {
  if (mask.dtype() != DType::boolean) return result;
  const Sym sees = reduce(Op::reduce_max, cast(mask, DType::u8), {mask.rank() - 1});
  return where(cast(sees, DType::boolean), result, 0.0);
}

void attention(TorchContext& c) {
  const Sym q = c.tensor("query");
  Sym k = c.tensor("key");
  Sym v = c.tensor("value");
  if (c.has("enable_gqa") && c.flag("enable_gqa")) {
    if (q.rank() < 3 || k.rank() < 3 || k.dim(-3) < 1 || q.dim(-3) % k.dim(-3) != 0)
      throw ModelError("{} heads of queries do not divide into those of keys", q.rank() < 3 ? 1 : q.dim(-3));
    const std::int64_t times = q.dim(-3) / k.dim(-3);
    k = repeat_heads(k, times);
    v = repeat_heads(v, times);
  }
  std::vector<Sym> inputs{q, k, v};
  if (const Sym mask = mask_of(c, q)) inputs.push_back(mask);
  if (c.real("dropout_p", 0) != 0) throw UnsupportedError("dropout inside of attention is not served");
  Attributes attributes{{"causal", std::int64_t{c.flag("is_causal", false)}}};
  if (c.has("scale")) attributes.set("scale", c.real("scale"));
  const Sym result = c.builder().add(Op::attention, inputs, attributes);
  c.output(inputs.size() > 3 ? with_empty_rows_zero(result, inputs[3]) : result);
}

/// What Op::attention_gradient takes.
bool has_gradient_operations(TorchContext& c, Sym q, Sym k, Sym v) {
  const bool is_narrow = is_half(q.dtype());
  return c.has_gradient_templates() && is_narrow && k.dims() == v.dims() && q.rank() == 4 &&
         q.dim(0) == k.dim(0) && q.dim(1) == k.dim(1) && q.dim(3) == k.dim(3);
}

/// Each by an operation, which makes the scores again.
void attention_gradients_kept(TorchContext& c, Sym grad, Sym result, const std::vector<Sym>& qkv, Sym mask,
                              Attributes how) {
  const auto with_mask = [&](std::vector<Sym> inputs) {
    if (mask) inputs.push_back(mask);
    return inputs;
  };
  const Sym sums = c.builder().add(Op::attention_sums, with_mask({qkv[0], qkv[1]}), how);
  const Sym products = reduce(Op::reduce_sum, cast(grad, DType::f32) * cast(result, DType::f32), {3}, false);
  std::vector<Sym> results;
  for (std::int64_t of = 0; of < 3; ++of) {
    how.set("of", of);
    results.push_back(c.builder().add(Op::attention_gradient,
                                      with_mask({qkv[0], qkv[1], qkv[2], grad, sums, products}), how));
  }
  c.outputs(std::move(results));
}

/// By the queries, the keys and the values.
void attention_gradient(TorchContext& c) {
  const Sym grad = c.tensor("grad_output"), result = c.tensor("result");
  const Sym q = c.tensor("query"), k = c.tensor("key"), v = c.tensor("value");
  const bool is_causal = c.flag("is_causal", false);
  const double scale = c.has("scale") ? c.real("scale") : 1 / std::sqrt(static_cast<double>(q.dim(-1)));
  if (has_gradient_operations(c, q, k, v))
    return attention_gradients_kept(c, grad, result, {q, k, v}, mask_of(c, q),
                                    {{"causal", std::int64_t{is_causal}}, {"scale", scale}});
  Sym scores = cast(matmul(q, swap_axes(k, -2, -1)), DType::f32) * scale;
  if (is_causal) {
    const std::int64_t rows = q.dim(-2), keys = k.dim(-2);
    const Sym is_seen = apply(Op::less_equal, c.builder().iota(DType::i64, {rows, keys}, 1),
                              c.builder().iota(DType::i64, {rows, keys}, 0));
    scores = where(is_seen, scores, -std::numeric_limits<double>::infinity());
  }
  if (const Sym mask = mask_of(c, q))
    scores = mask.dtype() == DType::boolean ? where(mask, scores, -std::numeric_limits<double>::infinity())
                                            : scores + cast(mask, DType::f32);
  const Sym weights = safe_softmax(scores, q.rank() - 1);
  const Sym change = cast(matmul(grad, swap_axes(v, -2, -1)), DType::f32);
  const Sym products = reduce(Op::reduce_sum, weights * change, {q.rank() - 1}, true);
  const Sym slopes = cast(weights * (change - products) * scale, q.dtype());
  c.outputs({matmul(slopes, k), matmul(swap_axes(slopes, -2, -1), q),
             matmul(swap_axes(cast(weights, q.dtype()), -2, -1), grad)});
}

/// Attention in CPU's own operation. Its second result, of use for gradients alone, is absent.
void flash_attention(TorchContext& c) {
  c.ignore("return_debug_mask");
  attention(c);
  c.outputs({c.results()[0], Sym()});
}

/// x [rows, depth] as [rows, groups depth]: each row in the columns of its group, beside zeros. Group e has the rows from
/// ends[e - 1] on, before ends[e]. A product with it is the products of the groups, at the cost of each row in every group:
/// the sizes of groups depend on data.
Sym apart_by_group(Sym x, Sym ends) {
  const std::int64_t rows = x.dim(0), depth = x.dim(1), groups = ends.dim(0);
  ends = cast(ends, DType::i64);
  const Sym row = x.builder().iota(DType::i64, {rows, 1}, 0);
  const Sym starts = pad(slice(ends, 0, 0, groups - 1), {1}, {0});
  const Sym is_inside =
      apply(Op::logical_and, apply(Op::greater_equal, row, starts), apply(Op::less, row, ends));
  const Sym apart = where(unsqueeze(is_inside, {2}), unsqueeze(x, {1}), 0.0);
  return reshape(apart, {rows, groups * depth});
}

/// Rows by the matrix [depth, width] of their group.
Sym product_by_group(Sym x, Sym weights, Sym ends) {
  if (x.rank() != 2 || weights.rank() != 3 || ends.rank() != 1 || ends.dim(0) != weights.dim(0) ||
      ends.dim(0) < 1)
    throw UnsupportedError("products of groups of rows, each by a matrix of its own, are served alone");
  return matmul(apart_by_group(x, ends), reshape(weights, {weights.dim(0) * weights.dim(1), weights.dim(2)}));
}

/// For each group the product of x transposed and y, which have the same rows: [groups, depth of x, depth of y].
Sym products_of_groups(Sym x, Sym y, Sym ends) {
  return reshape(matmul(swap_axes(apart_by_group(x, ends), 0, 1), y), {ends.dim(0), x.dim(1), y.dim(1)});
}

void grouped_product(TorchContext& c) {
  c.ignore("out_dtype");
  const Sym x = c.tensor("self"), y = c.tensor("mat2"), ends = c.tensor("offs");
  const bool is_inner = x.rank() == 2 && y.rank() == 2;  // the groups are of columns of x and rows of y
  const Sym result =
      is_inner ? products_of_groups(swap_axes(x, 0, 1), y, ends) : product_by_group(x, y, ends);
  c.output(cast(result, c.result_dtype()));
}

/// As the library transformers calls it where torch's own is not to be had.
void grouped_product_named(TorchContext& c) {
  c.output(product_by_group(c.tensor("input"), c.tensor("weight"), c.tensor("offs")));
}

void grouped_product_backward(TorchContext& c) {
  const Sym x = c.tensor("input"), weights = c.tensor("weight"), ends = c.tensor("offs");
  const Sym grad = c.tensor("grad_output");
  c.outputs({product_by_group(grad, swap_axes(weights, 1, 2), ends), products_of_groups(x, grad, ends)});
}

constexpr std::string_view attention_schema =
    "query key value attn_mask is_causal scale enable_gqa dropout_p";

const TorchOp matmul_rows[] = {
    {"aten._scaled_dot_product_flash_attention_for_cpu.default",
     "query key value dropout_p is_causal attn_mask scale enable_gqa return_debug_mask", flash_attention},
    {"aten._grouped_mm.default", "self mat2 offs bias out_dtype", grouped_product},
    {"aten.addmm.default", "self mat1 mat2 beta alpha", add_product},
    {"aten.baddbmm.default", "self mat1 mat2 beta alpha", add_product},
    {"aten.bmm.default", "self mat2", product},
    {"aten.matmul.default", "self mat2", product},
    {"aten.mm.default", "self mat2", product},
    {"sylvite.attention.default", attention_schema, attention},
    {"sylvite.attention_gradient.default", "grad_output query key value attn_mask result is_causal scale",
     attention_gradient},
    {"transformers.grouped_mm_fallback.default", "input weight offs", grouped_product_named},
    {"transformers.grouped_mm_fallback_backward.default", "input weight offs grad_output",
     grouped_product_backward},
};

}  // namespace

std::span<const TorchOp> torch_matmul_ops() {
  return matmul_rows;
}

}  // namespace sylvite
