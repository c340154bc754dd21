// Products of matrices, and attention.

#include "frontend/torch/torch_ops.h"

namespace sylvite {
namespace {

Sym scaled(TorchContext& c, Sym x, std::string_view name) {
  return c.real(name, 1) == 1 ? x : x * c.real(name);
}

void product(TorchContext& c) {
  c.output(matmul(c.tensor("self"), c.tensor("mat2")));
}

/// beta self + alpha mat1 mat2
void add_product(TorchContext& c) {
  const Sym product = scaled(c, matmul(c.tensor("mat1"), c.tensor("mat2")), "alpha");
  if (c.real("beta", 1) == 0) return c.ignore("self"), c.output(product);
  c.output(product + scaled(c, c.tensor("self"), "beta"));
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
  if (const Sym mask = c.optional("attn_mask"))
    inputs.push_back(mask.dtype() == DType::boolean ? mask : cast(mask, q.dtype()));
  if (c.real("dropout_p", 0) != 0) throw UnsupportedError("dropout inside of attention is not served");
  Attributes attributes{{"causal", std::int64_t{c.flag("is_causal", false)}}};
  if (c.has("scale")) attributes.set("scale", c.real("scale"));
  c.output(c.builder().add(Op::attention, inputs, attributes));
}

/// The same in CPU's own operation. Its second result, of use for gradients alone, is absent.
void flash_attention(TorchContext& c) {
  c.ignore("return_debug_mask");
  attention(c);
  c.outputs({c.results()[0], Sym()});
}

constexpr std::string_view attention_schema =
    "query key value attn_mask is_causal scale enable_gqa dropout_p";

const TorchOp rows[] = {
    {"aten._scaled_dot_product_flash_attention_for_cpu.default",
     "query key value dropout_p is_causal attn_mask scale enable_gqa return_debug_mask", flash_attention},
    {"aten.addmm.default", "self mat1 mat2 beta alpha", add_product},
    {"aten.baddbmm.default", "self mat1 mat2 beta alpha", add_product},
    {"aten.bmm.default", "self mat2", product},
    {"aten.matmul.default", "self mat2", product},
    {"aten.mm.default", "self mat2", product},
    {"sylvite.attention.default", attention_schema, attention},
};

}  // namespace

std::span<const TorchOp> torch_matmul_ops() {
  return rows;
}

}  // namespace sylvite
