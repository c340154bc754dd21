#include "frontend/ops/op_table.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "frontend/ops/absent_attributes.h"
#include "frontend/ops/evaluate.h"
#include "frontend/ops/infer.h"

namespace sylvite {
namespace {

using Kind = AttributeInfo::Kind;
using Rows = std::vector<OpInfo>;

constexpr std::uint32_t bits(std::initializer_list<OpTrait> traits) {
  std::uint32_t result = 0;
  for (OpTrait trait : traits) result |= static_cast<std::uint32_t>(trait);
  return result;
}

constexpr std::uint32_t finite = bits({OpTrait::finite});
constexpr std::uint32_t commutative = bits({OpTrait::commutative});
constexpr std::uint32_t arithmetic = bits({OpTrait::arithmetic});
constexpr std::uint32_t every_input = ~std::uint32_t{0};
constexpr std::uint32_t first_input = 1;
constexpr std::uint32_t second_and_third_inputs = 2 + 4;
constexpr std::uint32_t third_input = 4;
constexpr std::uint32_t fourth_input = 8;
constexpr std::uint32_t fifth_and_sixth_inputs = 16 + 32;

using Stages = std::vector<std::string>;

/// Facts of a pointwise operation. Arithmetic takes f32 beside narrow operands.
OpFacts element(Cost cost, std::uint32_t more = 0) {
  return {bits({OpTrait::pointwise}) | more, cost, (more & arithmetic) != 0 ? every_input : 0, {}};
}
OpFacts moving(std::initializer_list<OpTrait> more, std::uint32_t wide_inputs = 0, Stages stages = {}) {
  return {bits({OpTrait::movement}) | bits(more), Cost::simple, wide_inputs, std::move(stages)};
}
OpFacts folding(OpTrait family) {
  return {bits({family}), Cost::simple, 0, {"_fold"}};
}
OpFacts normalizing(std::initializer_list<OpTrait> more, Cost cost, std::uint32_t wide_inputs,
                    Stages stages) {
  return {bits({OpTrait::normalization}) | bits(more), cost, wide_inputs, std::move(stages)};
}
OpFacts window(OpTrait family, decltype(OpFacts::terms) terms, std::uint32_t wide_inputs = 0,
               Stages stages = {"_fold"}) {
  return {bits({family}), Cost::simple, wide_inputs, std::move(stages), terms};
}

AttributeInfo required(std::string name, Kind kind, std::string help) {
  return {std::move(name), std::nullopt, kind, std::move(help)};
}
AttributeInfo integer(std::string name, std::int64_t fallback, std::string help) {
  return {std::move(name), fallback, Kind::integer, std::move(help)};
}
AttributeInfo real(std::string name, double fallback, std::string help) {
  return {std::move(name), fallback, Kind::real, std::move(help)};
}
AttributeInfo string(std::string name, std::string fallback, std::string help) {
  return {std::move(name), std::move(fallback), Kind::string, std::move(help)};
}

AttributeInfo axis() {
  return required("axis", Kind::integer, "an axis of the first input, from 0");
}
AttributeInfo keepdims() {
  return integer("keepdims", 1, "1 leaves reduced axes with extent 1, 0 drops them");
}
AttributeInfo epsilon() {
  return real("epsilon", 1e-5, "added to the variance");
}
/// Absent where there is one group.
AttributeInfo norm_groups() {
  return {"groups", absent_attribute(), Kind::integer, "parts of dim `axis`, each normalised by itself"};
}
AttributeInfo scatter_reduction() {
  return string("reduction", "none", "none, add, mul, max or min");
}
AttributeInfo shape() {
  return required("shape", Kind::extents, "extents of the result");
}
AttributeInfo strides() {
  return required("strides", Kind::integers, "step of the window per spatial dim");
}
AttributeInfo pads() {
  return required("pads", Kind::extents, "begins, then ends, of the spatial dims");
}
AttributeInfo dilations() {
  return required("dilations", Kind::integers, "step inside the window per spatial dim");
}
AttributeInfo kernel() {
  return required("kernel", Kind::integers, "extent of the window per spatial dim");
}

void add(Rows& rows, Op op, std::string_view name, std::string_view inputs, OpFacts facts,
         std::vector<AttributeInfo> attributes, decltype(OpInfo::infer) infer,
         decltype(OpInfo::evaluate) evaluate, std::string_view help) {
  constexpr int many = 1 << 20;
  const auto names = static_cast<int>(inputs.empty() ? 0 : 1 + std::ranges::count(inputs, ','));
  const int least = names - static_cast<int>(std::ranges::count(inputs, '?'));
  const int most = inputs.ends_with("...") ? many : names;
  rows.push_back(
      {op, name, inputs, least, most, std::move(facts), std::move(attributes), infer, evaluate, help});
}

void add_unary_rows(Rows& rows) {
  const auto real_row = [&](Op op, std::string_view name, OpFacts facts, std::string_view help,
                            std::vector<AttributeInfo> attributes = {}) {
    add(rows, op, name, "x", std::move(facts), std::move(attributes), infer_real_unary, evaluate_unary, help);
  };
  const auto number_row = [&](Op op, std::string_view name, std::string_view help) {
    add(rows, op, name, "x", element(Cost::simple, finite), {}, infer_numeric_unary, evaluate_unary, help);
  };
  const OpFacts plain = element(Cost::simple);
  const OpFacts bounded = element(Cost::simple, finite);
  const OpFacts function = element(Cost::function);
  const OpFacts bounded_function = element(Cost::function, finite);
  number_row(Op::neg, "neg", "-x");
  number_row(Op::abs, "abs", "|x|");
  number_row(Op::sign, "sign", "-1, 0 or 1");
  real_row(Op::floor, "floor", bounded, "round down");
  real_row(Op::ceil, "ceil", bounded, "round up");
  add(rows, Op::round, "round", "x, scale?, zero?",
      {bits({OpTrait::pointwise, OpTrait::finite}), Cost::simple, second_and_third_inputs, {}},
      {string("to", "", "with a scale: name of the element type: i8, u8, i16 or u16")}, infer_round,
      evaluate_round,
      "round to nearest, half to even. With f32 scales, each from 2^-100 to 2^100: x/scale so rounded, plus "
      "zeros "
      "of the type `to`, saturated; NaN gives the smallest number");
  real_row(Op::sqrt, "sqrt", plain, "square root");
  real_row(Op::rsqrt, "rsqrt", plain, "1/sqrt(x)");
  real_row(Op::reciprocal, "reciprocal", plain, "1/x");
  real_row(Op::exp, "exp", function, "e^x");
  real_row(Op::log, "log", function, "natural logarithm");
  real_row(Op::sin, "sin", bounded_function, "sine");
  real_row(Op::cos, "cos", bounded_function, "cosine");
  real_row(Op::tan, "tan", function, "tangent");
  real_row(Op::asin, "asin", function, "arc sine");
  real_row(Op::acos, "acos", function, "arc cosine");
  real_row(Op::atan, "atan", function, "arc tangent");
  real_row(Op::sinh, "sinh", function, "hyperbolic sine");
  real_row(Op::cosh, "cosh", function, "hyperbolic cosine");
  real_row(Op::tanh, "tanh", bounded_function, "hyperbolic tangent");
  real_row(Op::asinh, "asinh", function, "inverse hyperbolic sine");
  real_row(Op::acosh, "acosh", function, "inverse hyperbolic cosine");
  real_row(Op::atanh, "atanh", function, "inverse hyperbolic tangent");
  real_row(Op::erf, "erf", bounded_function, "error function");
  real_row(Op::sigmoid, "sigmoid", bounded_function, "1/(1+e^-x)");
  number_row(Op::relu, "relu", "max(x, 0)");
  real_row(Op::gelu, "gelu", bounded_function, "x times the normal distribution function of x",
           {string("approximate", "none", "none: by erf; tanh: by tanh(sqrt(2/pi)(x+0.044715x^3))")});
  real_row(Op::silu, "silu", bounded_function, "x sigmoid(x)");
  real_row(Op::hard_sigmoid, "hard_sigmoid", bounded, "clamp(alpha x + beta, 0, 1)",
           {real("alpha", 0.2, "slope"), real("beta", 0.5, "value at 0")});
  real_row(Op::hard_swish, "hard_swish", bounded, "x clamp(x/6 + 1/2, 0, 1)");
  real_row(Op::softplus, "softplus", bounded_function, "log(1+e^x)");
  add(rows, Op::logical_not, "logical_not", "x", plain, {}, infer_logical_unary, evaluate_unary, "not");
  add(rows, Op::bitwise_not, "bitwise_not", "x", plain, {}, infer_bitwise_unary, evaluate_unary,
      "every bit flipped");
  add(rows, Op::is_nan, "is_nan", "x", plain, {}, infer_classify, evaluate_classify, "true for NaN");
  add(rows, Op::is_inf, "is_inf", "x", plain,
      {integer("detect_positive", 1, "1 finds +infinity"),
       integer("detect_negative", 1, "1 finds -infinity")},
      infer_classify, evaluate_classify, "true for infinities");
  add(rows, Op::cast, "cast", "x", plain,
      {required("to", Kind::string, "name of the element type"),
       integer("rounds", 1, "0: of f32 to a float of 16 bits, what reads it may take x")},
      infer_cast, evaluate_cast,
      "float to integer truncates and saturates, NaN gives 0; integer to integer wraps; to boolean is x != "
      "0");
  add(rows, Op::bitcast, "bitcast", "x", plain,
      {required("to", Kind::string, "name of an element type of as many bits")}, infer_bitcast,
      evaluate_bitcast, "the same bits read as another type");
}

void add_binary_rows(Rows& rows) {
  const auto row = [&](Op op, std::string_view name, OpFacts facts, auto infer, auto evaluate,
                       std::string_view help, std::vector<AttributeInfo> attributes = {}) {
    add(rows, op, name, "a, b", std::move(facts), std::move(attributes), infer, evaluate, help);
  };
  const OpFacts plain = element(Cost::simple);
  const OpFacts symmetric = element(Cost::simple, commutative);
  const OpFacts bounded = element(Cost::simple, arithmetic | finite);
  const OpFacts bounded_symmetric = element(Cost::simple, arithmetic | finite | commutative);
  row(Op::add, "add", bounded_symmetric, infer_arithmetic, evaluate_binary, "a + b");
  row(Op::sub, "sub", bounded, infer_arithmetic, evaluate_binary, "a - b");
  row(Op::mul, "mul", bounded_symmetric, infer_arithmetic, evaluate_binary, "a b");
  row(Op::div, "div", element(Cost::simple, arithmetic), infer_arithmetic, evaluate_binary,
      "a / b; integers truncate toward zero, and x / 0 is 0 for them");
  row(Op::pow, "pow", element(Cost::call, arithmetic), infer_arithmetic, evaluate_binary, "a^b");
  row(Op::mod, "mod", element(Cost::call), infer_arithmetic, evaluate_binary,
      "remainder; integer x mod 0 is 0",
      {integer("fmod", 0, "0: sign of the divisor, 1: sign of the dividend")});
  row(Op::minimum, "minimum", bounded_symmetric, infer_arithmetic, evaluate_binary, "the smaller; NaN wins");
  row(Op::maximum, "maximum", bounded_symmetric, infer_arithmetic, evaluate_binary, "the larger; NaN wins");
  row(Op::equal, "equal", symmetric, infer_equality, evaluate_compare, "a == b");
  row(Op::less, "less", plain, infer_ordering, evaluate_compare, "a < b");
  row(Op::less_equal, "less_equal", plain, infer_ordering, evaluate_compare, "a <= b");
  row(Op::greater, "greater", plain, infer_ordering, evaluate_compare, "a > b");
  row(Op::greater_equal, "greater_equal", plain, infer_ordering, evaluate_compare, "a >= b");
  row(Op::logical_and, "logical_and", symmetric, infer_logical, evaluate_binary, "and");
  row(Op::logical_or, "logical_or", symmetric, infer_logical, evaluate_binary, "or");
  row(Op::logical_xor, "logical_xor", symmetric, infer_logical, evaluate_binary, "exclusive or");
  row(Op::bitwise_and, "bitwise_and", symmetric, infer_bitwise, evaluate_binary, "and of bits");
  row(Op::bitwise_or, "bitwise_or", symmetric, infer_bitwise, evaluate_binary, "or of bits");
  row(Op::bitwise_xor, "bitwise_xor", symmetric, infer_bitwise, evaluate_binary, "exclusive or of bits");
  row(Op::shift_left, "shift_left", plain, infer_bitwise, evaluate_binary,
      "a << b; 0 when b is negative or not below the width");
  row(Op::shift_right, "shift_right", plain, infer_bitwise, evaluate_binary,
      "a >> b, keeping the sign of signed integers; beyond the width only the sign is left");
  add(rows, Op::where, "where", "condition, a, b", plain, {}, infer_where, evaluate_where,
      "condition ? a : b");
}

void add_movement_rows(Rows& rows) {
  const OpFacts view = moving({OpTrait::view});
  const OpFacts scattering = moving({OpTrait::scatter}, 0, {"_fold"});
  add(rows, Op::iota, "iota", "", {bits({OpTrait::creation}), Cost::simple, 0, {}},
      {shape(), required("axis", Kind::integer, "the axis that counts"),
       required("dtype", Kind::string, "name of the element type")},
      infer_iota, evaluate_iota, "0, 1, ... along an axis");
  add(rows, Op::extents, "extents", "", {bits({OpTrait::creation}), Cost::simple, 0, {}},
      {required("values", Kind::extents, "the numbers, of which one has a symbol at least"),
       string("dtype", "i64", "name of the element type"),
       integer("rank", 1, "of the result, which has one element where it is not 1"),
       integer("inverse", 0, "1: they are 1 / each number, rounded once"),
       AttributeInfo{"half", absent_attribute(), Kind::integer, "they are half of each number"}},
      infer_extents, evaluate_extents, "sizes as numbers; a constant once symbols have values");
  add(rows, Op::reshape, "reshape", "x", view, {shape()}, infer_reshape, evaluate_reshape,
      "the same elements in row-major order; all extents are explicit");
  add(rows, Op::transpose, "transpose", "x", view,
      {required("perm", Kind::integers, "input axis per output axis")}, infer_transpose, evaluate_transpose,
      "out.dim[i] = x.dim[perm[i]]");
  add(rows, Op::broadcast_to, "broadcast_to", "x", view, {shape()}, infer_broadcast_to, evaluate_broadcast_to,
      "numpy broadcasting");
  add(rows, Op::slice, "slice", "x", view,
      {required("starts", Kind::extents, "first index per axis"),
       required("sizes", Kind::extents, "elements per axis"),
       required("steps", Kind::integers, "step per axis, not 0")},
      infer_slice, evaluate_slice, "out[i] = x[start + i step] per axis, never out of range");
  add(rows, Op::pad, "pad", "x, value?", moving({}),
      {required("low", Kind::extents, "elements before, per axis; negative cuts off"),
       required("high", Kind::extents, "elements after, per axis; negative cuts off"),
       {"interior", std::vector<std::int64_t>{}, Kind::integers,
        "elements between neighbours, per axis, in mode constant; empty for none"},
       string("mode", "constant", "constant, reflect, edge or wrap")},
      infer_pad, evaluate_pad, "x inside a border of `value`, of the type of x, or of 0");
  add(rows, Op::concat, "concat", "x...", moving({}), {axis()}, infer_concat, evaluate_concat,
      "one after another");
  add(rows, Op::gather, "gather", "x, indices", moving({OpTrait::gather}, first_input), {axis()},
      infer_gather, evaluate_gather,
      "whole slices of x at indices along an axis; negative ones count from the end, others are clamped");
  add(rows, Op::gather_elements, "gather_elements", "x, indices", moving({OpTrait::gather}), {axis()},
      infer_gather_elements, evaluate_gather_elements, "out[i][j] = x[indices[i][j]][j] for axis 0");
  add(rows, Op::gather_nd, "gather_nd", "x, indices", moving({OpTrait::gather}),
      {integer("batch_dims", 0, "leading dims in common")}, infer_gather_nd, evaluate_gather_nd,
      "slices of x at index tuples");
  add(rows, Op::scatter_elements, "scatter_elements", "x, indices, updates", scattering,
      {axis(), scatter_reduction()}, infer_scatter_elements, evaluate_scatter_elements,
      "x with elements replaced or combined, in order; indices as for gather");
  add(rows, Op::scatter_nd, "scatter_nd", "x, indices, updates, least?, greatest?", scattering,
      {scatter_reduction()}, infer_scatter_nd, evaluate_scatter_nd,
      "x with slices at index tuples replaced or combined; bounds of as many indices each, where there are "
      "any, save looks");
  const OpFacts writing = moving({OpTrait::scatter}, 0, {""});
  add(rows, Op::write_elements, "write_elements", "x, indices, updates", writing,
      {axis(), scatter_reduction()}, infer_scatter_elements, evaluate_scatter_elements,
      "scatter_elements into the bytes of x, which is a state that nothing else reads");
  add(rows, Op::write_nd, "write_nd", "x, indices, updates", writing, {scatter_reduction()}, infer_scatter_nd,
      evaluate_scatter_nd, "scatter_nd in the same way");
  add(rows, Op::to_layout, "to_layout", "x", moving({}),
      {required("block", Kind::integer, "channels per block, 0 for dense")}, infer_to_layout,
      evaluate_identity, "the same values in another layout");
}

void add_reduction_rows(Rows& rows) {
  const OpFacts reduction = folding(OpTrait::reduction);
  const AttributeInfo axes = required("axes", Kind::integers, "axes to fold, sorted");
  const AttributeInfo select_last = integer("select_last", 0, "1: of equal values the last");
  const auto reduce = [&](Op op, std::string_view name, std::string_view help) {
    add(rows, op, name, "x", reduction, {axes, keepdims()}, infer_reduce, evaluate_reduce, help);
  };
  reduce(Op::reduce_sum, "reduce_sum", "sum; 0 when there is nothing to add");
  reduce(Op::reduce_max, "reduce_max", "largest; NaN wins");
  reduce(Op::reduce_min, "reduce_min", "smallest; NaN wins");
  reduce(Op::reduce_prod, "reduce_prod", "product; 1 when there is nothing to multiply");
  add(rows, Op::arg_max, "arg_max", "x", reduction, {axis(), keepdims(), select_last}, infer_arg_reduce,
      evaluate_arg_reduce, "i64 index of the largest");
  add(rows, Op::arg_min, "arg_min", "x", reduction, {axis(), keepdims(), select_last}, infer_arg_reduce,
      evaluate_arg_reduce, "i64 index of the smallest");
  const std::vector<AttributeInfo> scan_attributes = {
      axis(), integer("exclusive", 0, "1: without the element itself"),
      integer("reverse", 0, "1: from the end")};
  add(rows, Op::cumsum, "cumsum", "x", folding(OpTrait::scan), scan_attributes, infer_scan, evaluate_scan,
      "running sum");
  add(rows, Op::cumprod, "cumprod", "x", folding(OpTrait::scan), scan_attributes, infer_scan, evaluate_scan,
      "running product");
  add(rows, Op::top_k, "top_k", "x", {0, Cost::simple, 0, {"_fold"}},
      {axis(), required("k", Kind::extents, "how many: one extent"), integer("largest", 1, "0: the smallest"),
       integer(
           "ties", 0,
           "on a CPU, 1: equal ones as libstdc++'s partial_sort leaves them where 64 k elements are no "
           "more than all, "
           "else its nth_element and sort; 2: the same, and what nth_element leaves is not sorted; 3: as the "
           "partitions of torch's kthvalue leave them")},
      infer_top_k, evaluate_top_k,
      "sorted values and their i64 indices; of equal ones the lower index first");
}

void add_normalization_rows(Rows& rows) {
  const OpFacts softmax = normalizing({}, Cost::function, 0, {"_max", "_sum"});
  add(rows, Op::softmax, "softmax", "x", softmax, {axis()}, infer_softmax, evaluate_softmax,
      "e^x over its sum along an axis");
  add(rows, Op::log_softmax, "log_softmax", "x", softmax, {axis()}, infer_softmax, evaluate_softmax,
      "logarithm of softmax");
  add(rows, Op::layer_norm, "layer_norm", "x, scale?, bias?",
      normalizing({OpTrait::row_norm}, Cost::simple, every_input, {"_total", "_square"}),
      {axis(), epsilon(), norm_groups()}, infer_axis_norm, evaluate_axis_norm,
      "(x - mean)/sqrt(variance + epsilon) scale + bias over axis to last");
  add(rows, Op::rms_norm, "rms_norm", "x, scale?",
      normalizing({OpTrait::row_norm}, Cost::simple, every_input, {"_square"}), {axis(), epsilon()},
      infer_axis_norm, evaluate_axis_norm, "x/sqrt(mean of squares + epsilon) scale over axis to last");
  add(rows, Op::batch_norm, "batch_norm", "x, scale, bias, mean, variance",
      normalizing({}, Cost::simple, every_input & ~first_input, {}), {epsilon()}, infer_batch_norm,
      evaluate_batch_norm, "(x - mean)/sqrt(variance + epsilon) scale + bias per channel, dim 1");
}

void add_bits_rows(Rows& rows) {
  const std::vector<AttributeInfo> attributes = {
      required("bits", Kind::integer, "of a number of b: 2, 4 or 8"),
      required("block", Kind::integer, "numbers of b with one scale, a power of two from 16")};
  add(rows, Op::matmul_bits, "matmul_bits", "a, b, scales, zeros?",
      window(OpTrait::matmul, matmul_terms, third_input | fourth_input, {"_fold"}), attributes,
      infer_matmul_bits, evaluate_matmul_bits,
      "floats[..., m, k] by the transpose of (b - zeros) scales, which is [n, k]: b is u8[n, blocks, bytes], "
      "block by block along k, the first number of a byte in its lowest bits; scales are floats[n, blocks], "
      "zeros u8 or floats of that shape, or 2^(bits-1). What is behind k in the last block does not count");
  add(rows, Op::quantized_matmul_bits, "quantized_matmul_bits", "a, b, scales, zeros?",
      window(OpTrait::matmul, matmul_terms, third_input | fourth_input, {"_peak", "_fold"}), attributes,
      infer_matmul_bits, evaluate_matmul_bits,
      "the same, but each block of a row of a becomes steps of its largest magnitude/127, which "
      "round(a 127/magnitude) counts; a block that is not finite gives NaN");
}

void add_contraction_rows(Rows& rows) {
  add(rows, Op::matmul, "matmul", "a, b", window(OpTrait::matmul, matmul_terms), {}, infer_matmul,
      evaluate_matmul,
      "product of matrices, of rank 2 or more; leading dims broadcast. One element type, or f32 and bf16, "
      "which gives f32 and "
      "is what storing a model in bf16 makes. Products of u8 or i16 by i8, and of i16 by i16, are added up "
      "in i32");
  add(rows, Op::quantized_matmul, "quantized_matmul", "a, b, scales, sums",
      window(OpTrait::matmul, matmul_terms, third_input, {"_extremes", "_fold"}), {}, infer_quantized_matmul,
      evaluate_quantized_matmul,
      "f32 or bf16[..., m, k] by i8[k, n], with f32[n] and i32[n], the sums of the columns of b. Each row of "
      "a becomes steps of "
      "range/255 from its lowest element (or 0) to its highest (or 0): step = min(round(a 255/range) + zero, "
      "255), zero = "
      "round(-lowest 255/range). Products are summed exactly in i32; results are f32(sum - zero sums) "
      "(range/255) scales. A "
      "row that is not finite gives NaN; k is at most 2^16");
  add_bits_rows(rows);
  add(rows, Op::conv, "conv", "x, w, bias?", window(OpTrait::convolution, conv_terms, third_input),
      {strides(), pads(), dilations(), integer("groups", 1, "groups of channels")}, infer_conv, evaluate_conv,
      "cross-correlation of [N, C, spatial] with [O, C/groups, spatial], 1 to 3 spatial dims. One element "
      "type; beside bf16 the "
      "bias may be f32, and so may filters of one channel each, which storing a model in bf16 makes. "
      "Integers as matmul has them, without a bias");
  add(rows, Op::filter_gradient, "filter_gradient", "gradient, x",
      window(OpTrait::convolution, filter_gradient_terms),
      {kernel(), strides(), pads(), dilations(), integer("groups", 1, "groups of channels"),
       integer("parts", 1, "ranges of pixels that have sums of their own"),
       integer("joined", 0, "1: taps of a line stand side by side, with their channels")},
      infer_filter_gradient, evaluate_filter_gradient,
      "[parts, taps, O, C/groups]: for each tap of the window of a convolution of x [N, C, spatial] into [N, "
      "O, "
      "spatial], the products of the gradient's channels with those that the tap met, summed over the pixels "
      "of a part. "
      "Joined: [parts, taps above each other, O, taps of a line times C]. Of 16-bit floats the sums are f32. "
      "A part is a multiple of 64 pixels of all images, the last one what "
      "is left");
  add(rows, Op::max_pool, "max_pool", "x", window(OpTrait::pooling, pool_terms),
      {kernel(), strides(), pads(), dilations()}, infer_pool, evaluate_pool,
      "largest in a window; NaN wins, padding never does. Extents are floor((x + pads - window)/stride) + 1");
  add(rows, Op::max_pool_gradient, "max_pool_gradient", "gradient, x",
      window(OpTrait::pooling, pool_terms, 0, {"_place", "_fold"}),
      {kernel(), strides(), pads(), dilations()}, infer_max_pool_gradient, evaluate_max_pool_gradient,
      "of a max_pool over x [N, C, y, x] into [N, C, y, x]: each element of the gradient is added where the "
      "first of the "
      "largest of its window is, row by row; NaN is the largest");
  add(rows, Op::avg_pool, "avg_pool", "x", window(OpTrait::pooling, pool_terms),
      {kernel(), strides(), pads(), dilations(),
       integer("count_include_pad", 0, "1: padding counts as zeros")},
      infer_pool, evaluate_pool, "mean of a window");
  add(rows, Op::attention, "attention", "q, k, v, mask?",
      window(OpTrait::attention, attention_terms, 0, {"_score", "_max", "_sum", "_value"}),
      {real("scale", 0, "0 means 1/sqrt(D)"), integer("causal", 0, "1: position l sees s <= l"),
       real("softcap", 0, "c > 0: scores become c tanh(score/c) before the mask")},
      infer_attention, evaluate_attention,
      "softmax(q k^T scale + mask) v of q [..., L, D], k [..., S, D] and v [..., S, Dv]; a boolean mask "
      "keeps what is true, others "
      "are added; it broadcasts to [..., L, S]");
  const AttributeInfo scale = real("scale", 0, "0 means 1/sqrt(D)");
  const AttributeInfo causal = integer("causal", 0, "1: position l sees s <= l");
  add(rows, Op::attention_sums, "attention_sums", "q, k, mask?",
      window(OpTrait::attention, attention_sums_terms, 0, {"_score", "_max", "_sum"}), {scale, causal},
      infer_attention_sums, evaluate_attention_sums,
      "f32 [..., L]: the logarithm of the sum of exp(q k^T scale + mask) over the keys, of q [..., L, D] and "
      "k [..., S, D]; the mask as attention's");
  add(rows, Op::attention_gradient, "attention_gradient", "q, k, v, gradient, sums, products, mask?",
      window(OpTrait::attention, attention_gradient_terms, fifth_and_sixth_inputs,
             {"_score", "_slope", "_fold"}),
      {required("of", Kind::integer, "0, 1 or 2: by q, k or v"), scale, causal}, infer_attention_gradient,
      evaluate_attention_gradient,
      "of attention(q, k, v, mask), all of D columns, whose result had `gradient` [..., L, D]; sums: "
      "attention_sums(q, k, mask), f32; "
      "products: f32 [..., L], the sum over columns of gradient times result. A row that sees no key changes "
      "nothing");
}

void add_loop_row(Rows& rows) {
  add(rows, Op::loop, "loop", "values...", {0, Cost::call, 0, {}},
      {required("body", Kind::graph, "what runs in a trip"),
       required("trips", Kind::integer, "how many times it runs, at least 1"),
       required("states", Kind::integer, "how many inputs are states, the first"),
       required("scanned", Kind::integer, "how many inputs are scanned, the next"),
       integer("reverse", 0, "1: trips go from the last slice to the first")},
      infer_loop, nullptr,
      "runs a graph `trips` times. It takes the states, a slice of each scanned input [trips, ...], and all "
      "other inputs as they are; it gives the next states, then slices. Results: the last states, then the "
      "slices stacked as [trips, ...]");
}

void add_random_row(Rows& rows) {
  add(rows, Op::random_bits, "random_bits", "index, seed", element(Cost::call),
      {integer("stream", 0, "tells draws with one seed apart, from 0 to 2^32 - 1")}, infer_random_bits,
      evaluate_random_bits,
      "32 random bits for each i64 or i32 index, as u32: word 0 of Philox 4x32-10 at the counter (index, "
      "stream, 0), where the i64 seed is the key");
}

Rows make_rows() {
  Rows rows;
  add_unary_rows(rows);
  add_binary_rows(rows);
  add_movement_rows(rows);
  add_reduction_rows(rows);
  add_normalization_rows(rows);
  add_contraction_rows(rows);
  add_loop_row(rows);
  add_random_row(rows);
  bool ordered = rows.size() == static_cast<std::size_t>(Op::count_);
  for (std::size_t i = 0; ordered && i < rows.size(); ++i) ordered = rows[i].op == static_cast<Op>(i);
  if (!ordered) throw InternalError("the op table is not in the order of the operations");
  return rows;
}

const Rows& rows() {
  static const Rows table = make_rows();
  return table;
}

}  // namespace

bool is_of_kind(const Attribute& attribute, AttributeInfo::Kind kind) {
  const bool is_integers = std::holds_alternative<std::vector<std::int64_t>>(attribute);
  if (kind == Kind::extents && is_integers) return true;
  return attribute.index() == static_cast<std::size_t>(kind);
}

const AttributeInfo* OpInfo::find_attribute(std::string_view attribute) const {
  for (const AttributeInfo& info : attributes)
    if (info.name == attribute) return &info;
  return nullptr;
}

const OpInfo& op_info(Op op) {
  return rows().at(static_cast<std::size_t>(op));
}

std::span<const OpInfo> op_table() {
  return rows();
}

std::optional<Op> find_op(std::string_view name) {
  static const std::map<std::string_view, Op> by_name = [] {
    std::map<std::string_view, Op> index;
    for (const OpInfo& row : rows()) index.emplace(row.name, row.op);
    return index;
  }();
  const auto found = by_name.find(name);
  if (found == by_name.end()) return std::nullopt;
  return found->second;
}

}  // namespace sylvite
