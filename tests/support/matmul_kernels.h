#pragma once
// Matmul kernels in the forms that models have, for tests of templates.

#include <string>

#include "lowering/plan/kernel.h"

namespace sylvite {

struct MatmulSpec {
  std::int64_t batch = 1, m = 64, n = 64, k = 64;
  DType element = DType::bf16;
  DType out = DType::bf16;
  bool a_transposed = false;  ///< stored [k, m]
  bool b_transposed = true;   ///< stored [n, k], as linear layers are
  bool b_batched = false;
  std::string epilogue =
      "none";  ///< none, bias, relu, gelu, gelu_tanh (all with bias), row, residual, scale, part
};

namespace matmul_kernels {

inline Dims with_batch(std::int64_t batch, Dims dims) {
  if (batch > 1) dims.insert(dims.begin(), batch);
  return dims;
}

inline ValueId operand(Graph& body, const std::string& name, const MatmulSpec& spec, std::int64_t batch,
                       std::int64_t rows, std::int64_t columns, bool transposed) {
  const Dims stored = with_batch(batch, transposed ? Dims{columns, rows} : Dims{rows, columns});
  const ValueId in = body.add_input(name, make_type(spec.element, stored));
  if (!transposed) return in;
  return body.add(Op::transpose, {in}, {{"perm", batch > 1 ? Dims{0, 2, 1} : Dims{1, 0}}});
}

inline ValueId activation(Graph& body, ValueId x, const std::string& name) {
  if (name == "relu") return body.add(Op::relu, {x});
  if (name == "gelu") return body.add(Op::gelu, {x});
  if (name == "gelu_tanh") return body.add(Op::gelu, {x}, {{"approximate", "tanh"}});
  return x;
}

/// What is added or multiplied; shapes broadcast against the product's.
inline ValueId with_epilogue(Graph& body, ValueId x, const MatmulSpec& spec) {
  const std::string& name = spec.epilogue;
  if (name == "none") return x;
  const auto input = [&](const Dims& dims) {
    return body.add_input("e", make_type(body.type(x).dtype, dims));
  };
  if (name == "row") return body.add(Op::mul, {x, input(with_batch(spec.batch, {spec.m, 1}))});
  if (name == "scale") return body.add(Op::mul, {x, input({1})});
  if (name == "part") {  // of rows that lie further apart
    const ValueId wide = input(with_batch(spec.batch, {spec.m, 2 * spec.n}));
    Dims starts(body.type(wide).dims().size(), 0);
    starts.back() = spec.n;
    const ValueId part = body.add(Op::slice, {wide},
                                  {{"starts", starts},
                                   {"sizes", with_batch(spec.batch, {spec.m, spec.n})},
                                   {"steps", Dims(starts.size(), 1)}});
    return body.add(Op::mul, {x, part});
  }
  if (name == "residual")
    return body.add(
        Op::add, {body.add(Op::add, {x, input({spec.n})}), input(with_batch(spec.batch, {spec.m, spec.n}))});
  return activation(body, body.add(Op::add, {x, input({spec.n})}), name);
}

}  // namespace matmul_kernels

/// The right operand is a weight; what the epilogue reads is not.
inline Kernel matmul_kernel(const MatmulSpec& spec) {
  Graph body;
  const ValueId a = matmul_kernels::operand(body, "a", spec, spec.batch, spec.m, spec.k, spec.a_transposed);
  const ValueId b = matmul_kernels::operand(body, "b", spec, spec.b_batched ? spec.batch : 1, spec.k, spec.n,
                                            spec.b_transposed);
  ValueId x = body.add(Op::matmul, {a, b});
  if (spec.out != spec.element) x = body.add(Op::cast, {x}, {{"to", std::string(dtype_name(spec.out))}});
  body.outputs = {matmul_kernels::with_epilogue(body, x, spec)};
  std::vector<bool> weights(body.inputs.size(), false);
  weights[1] = true;
  return make_kernel(body, std::move(weights));
}

/// Queries by keys of three images' four heads, or shares by values, as layers make them: between a head's rows lie those of others.
inline Kernel heads_kernel(DType element, bool of_values) {
  constexpr std::int64_t tokens = 136, width = 64;
  Graph body;
  const auto rows = [&](const char* name, const Dims& order) {
    const ValueId made = body.add_input(name, make_type(element, {3, tokens, 4, width}));
    return body.add(Op::transpose, {made}, {{"perm", order}});
  };
  if (of_values) {
    const ValueId shares = body.add_input("shares", make_type(element, {3, 4, tokens, tokens}));
    body.outputs = {body.add(Op::matmul, {shares, rows("v", {0, 2, 1, 3})})};
  } else {
    const ValueId queries = rows("q", {0, 2, 1, 3});
    body.outputs = {body.add(Op::matmul, {queries, rows("k", {0, 2, 3, 1})})};
  }
  return make_kernel(body, {false, false});
}

}  // namespace sylvite
