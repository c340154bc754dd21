#pragma once
// The core operations. Names follow ONNX and PyTorch where they agree; docs/operations.md says what each means.

#include <cstdint>

namespace sylvite {

/// Order groups ops by family; it is not persistent (texts and databases hold names).
enum class Op : std::uint16_t {
  // pointwise, one input
  neg,
  abs,
  sign,
  floor,
  ceil,
  round,
  sqrt,
  rsqrt,
  reciprocal,
  exp,
  log,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  tanh,
  asinh,
  acosh,
  atanh,
  erf,
  sigmoid,
  relu,
  gelu,
  silu,
  hard_sigmoid,
  hard_swish,
  softplus,
  logical_not,
  bitwise_not,
  is_nan,
  is_inf,
  cast,
  bitcast,
  // pointwise, two inputs, numpy broadcasting
  add,
  sub,
  mul,
  div,
  pow,
  mod,
  minimum,
  maximum,
  equal,
  less,
  less_equal,
  greater,
  greater_equal,
  logical_and,
  logical_or,
  logical_xor,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  shift_left,
  shift_right,
  // pointwise, three inputs: where(condition, if_true, if_false), broadcasting
  where,
  // creation: iota{shape, axis, dtype} counts along axis
  iota,
  // extents{values}: sizes as numbers, i64 of rank 1
  extents,
  // data movement
  reshape,
  transpose,
  broadcast_to,
  slice,
  pad,
  concat,
  gather,
  gather_elements,
  gather_nd,
  scatter_elements,
  scatter_nd,
  write_elements,
  write_nd,
  to_layout,
  // reductions over axes
  reduce_sum,
  reduce_max,
  reduce_min,
  reduce_prod,
  arg_max,
  arg_min,
  // scans and orderings along one axis
  cumsum,
  cumprod,
  top_k,
  // normalisations
  softmax,
  log_softmax,
  layer_norm,
  rms_norm,
  batch_norm,
  // contractions and windows
  matmul,
  quantized_matmul,
  matmul_bits,
  quantized_matmul_bits,
  conv,
  filter_gradient,
  max_pool,
  max_pool_gradient,
  avg_pool,
  attention,
  attention_sums,
  attention_gradient,
  // a body that runs a known number of times: loop{body, trips, ...}
  loop,
  // random numbers, pointwise with numpy broadcasting: random_bits(index, seed){stream}
  random_bits,
  count_  ///< number of rows, not an operation
};

}  // namespace sylvite
