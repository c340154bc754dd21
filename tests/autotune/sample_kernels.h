#pragma once
// Small kernels for the tests of this stage.

#include <string>

#include "lowering/plan/kernel.h"

namespace sylvite {

/// relu(a x b + bias) with a of `rows` rows; different rows make different kernels.
inline Kernel sample_matmul(std::int64_t rows = 16) {
  Graph body;
  ValueId a = body.add_input("a", make_type(DType::f32, {rows, 32}));
  ValueId b = body.add_input("b", make_type(DType::f32, {32, 64}));
  ValueId bias = body.add_input("bias", make_type(DType::f32, {64}));
  ValueId sum = body.add(Op::add, {body.add(Op::matmul, {a, b}), bias});
  body.outputs = {body.add(Op::relu, {sum})};
  return make_kernel(body, {false, true, true});
}

inline Kernel sample_pointwise(std::int64_t size = 1000) {
  Graph body;
  ValueId x = body.add_input("x", make_type(DType::f32, {size}));
  body.outputs = {body.add(Op::exp, {x})};
  return make_kernel(body, {false});
}

}  // namespace sylvite
