#pragma once
// Kernels that the tests of several convolution spaces use.

#include "lowering/plan/kernel.h"

namespace sylvite::test {

/// conv(sigmoid(x), w), three by three, all channel-blocked: the input is computed in the same kernel.
inline Kernel conv_of_computed_input() {
  Graph body;
  TensorType type = make_type(DType::f32, {1, 32, 7, 7});
  type.layout = {16};
  const ValueId x = body.add_input("x", type);
  const ValueId weight = body.add_input("w", make_type(DType::f32, {16, 32, 3, 3}));
  const ValueId active = body.add(Op::sigmoid, {x});
  body.value(active).type.layout = {16};
  const ValueId out = body.add(Op::conv, {active, weight},
                               {{"strides", Dims{1, 1}},
                                {"dilations", Dims{1, 1}},
                                {"pads", Dims{1, 1, 1, 1}},
                                {"groups", std::int64_t{1}}});
  body.value(out).type.layout = {16};
  body.outputs = {out};
  return make_kernel(body, {false, true});
}

}  // namespace sylvite::test
