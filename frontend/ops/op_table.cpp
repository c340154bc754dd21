#include "frontend/ops/op_table.h"

#include <map>

#include "base/error.h"
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

constexpr std::uint32_t plain = 0;
constexpr std::uint32_t pointwise = bits({OpTrait::pointwise});
constexpr std::uint32_t commutative = bits({OpTrait::pointwise, OpTrait::commutative});
constexpr std::uint32_t comparison = bits({OpTrait::pointwise, OpTrait::comparison});
constexpr std::uint32_t symmetric_comparison = comparison | bits({OpTrait::commutative});
constexpr std::uint32_t movement = bits({OpTrait::movement});
constexpr std::uint32_t view = bits({OpTrait::movement, OpTrait::view});
constexpr std::uint32_t gathering = bits({OpTrait::movement, OpTrait::gather});
constexpr std::uint32_t scattering = bits({OpTrait::movement, OpTrait::scatter});
constexpr std::uint32_t reduction = bits({OpTrait::reduction});
constexpr std::uint32_t scan = bits({OpTrait::scan});
constexpr std::uint32_t normalization = bits({OpTrait::normalization});
constexpr int many = 1 << 20;  // inputs of a variadic operation

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
AttributeInfo scatter_reduction() {
  return string("reduction", "none", "none, add, mul, max or min");
}
AttributeInfo shape() {
  return required("shape", Kind::integers, "extents of the result");
}
AttributeInfo strides() {
  return required("strides", Kind::integers, "step of the window per spatial dim");
}
AttributeInfo pads() {
  return required("pads", Kind::integers, "begins, then ends, of the spatial dims");
}
AttributeInfo dilations() {
  return required("dilations", Kind::integers, "step inside the window per spatial dim");
}
AttributeInfo kernel() {
  return required("kernel", Kind::integers, "extent of the window per spatial dim");
}

void add(Rows& rows, Op op, std::string_view name, int min_inputs, int max_inputs, std::uint32_t traits,
         std::vector<AttributeInfo> attributes, decltype(OpInfo::infer) infer,
         decltype(OpInfo::evaluate) evaluate, std::string_view help) {
  rows.push_back({op, name, min_inputs, max_inputs, traits, std::move(attributes), infer, evaluate, help});
}

void add_unary_rows(Rows& rows) {
  const auto real_row = [&](Op op, std::string_view name, std::string_view help,
                            std::vector<AttributeInfo> attributes = {}) {
    add(rows, op, name, 1, 1, pointwise, std::move(attributes), infer_real_unary, evaluate_unary, help);
  };
  const auto number_row = [&](Op op, std::string_view name, std::string_view help) {
    add(rows, op, name, 1, 1, pointwise, {}, infer_numeric_unary, evaluate_unary, help);
  };
  number_row(Op::neg, "neg", "-x");
  number_row(Op::abs, "abs", "|x|");
  number_row(Op::sign, "sign", "-1, 0 or 1");
  real_row(Op::floor, "floor", "round down");
  real_row(Op::ceil, "ceil", "round up");
  real_row(Op::round, "round", "round to nearest, half to even");
  real_row(Op::sqrt, "sqrt", "square root");
  real_row(Op::rsqrt, "rsqrt", "1/sqrt(x)");
  real_row(Op::reciprocal, "reciprocal", "1/x");
  real_row(Op::exp, "exp", "e^x");
  real_row(Op::log, "log", "natural logarithm");
  real_row(Op::sin, "sin", "sine");
  real_row(Op::cos, "cos", "cosine");
  real_row(Op::tan, "tan", "tangent");
  real_row(Op::asin, "asin", "arc sine");
  real_row(Op::acos, "acos", "arc cosine");
  real_row(Op::atan, "atan", "arc tangent");
  real_row(Op::sinh, "sinh", "hyperbolic sine");
  real_row(Op::cosh, "cosh", "hyperbolic cosine");
  real_row(Op::tanh, "tanh", "hyperbolic tangent");
  real_row(Op::asinh, "asinh", "inverse hyperbolic sine");
  real_row(Op::acosh, "acosh", "inverse hyperbolic cosine");
  real_row(Op::atanh, "atanh", "inverse hyperbolic tangent");
  real_row(Op::erf, "erf", "error function");
  real_row(Op::sigmoid, "sigmoid", "1/(1+e^-x)");
  number_row(Op::relu, "relu", "max(x, 0)");
  real_row(Op::gelu, "gelu", "x times the normal distribution function of x",
           {string("approximate", "none", "none: by erf; tanh: by tanh(sqrt(2/pi)(x+0.044715x^3))")});
  real_row(Op::silu, "silu", "x sigmoid(x)");
  real_row(Op::hard_sigmoid, "hard_sigmoid", "clamp(alpha x + beta, 0, 1)",
           {real("alpha", 0.2, "slope"), real("beta", 0.5, "value at 0")});
  real_row(Op::hard_swish, "hard_swish", "x clamp(x/6 + 1/2, 0, 1)");
  real_row(Op::softplus, "softplus", "log(1+e^x)");
  add(rows, Op::logical_not, "logical_not", 1, 1, pointwise, {}, infer_logical_unary, evaluate_unary, "not");
  add(rows, Op::bitwise_not, "bitwise_not", 1, 1, pointwise, {}, infer_bitwise_unary, evaluate_unary,
      "every bit flipped");
  add(rows, Op::is_nan, "is_nan", 1, 1, comparison, {}, infer_classify, evaluate_classify, "true for NaN");
  add(rows, Op::is_inf, "is_inf", 1, 1, comparison,
      {integer("detect_positive", 1, "1 finds +infinity"),
       integer("detect_negative", 1, "1 finds -infinity")},
      infer_classify, evaluate_classify, "true for infinities");
  add(rows, Op::cast, "cast", 1, 1, pointwise, {required("to", Kind::string, "name of the element type")},
      infer_cast, evaluate_cast,
      "float to integer truncates and saturates, integer to integer wraps, to boolean is x != 0");
  add(rows, Op::bitcast, "bitcast", 1, 1, pointwise,
      {required("to", Kind::string, "name of an element type of as many bits")}, infer_bitcast,
      evaluate_bitcast, "the same bits read as another type");
}

void add_binary_rows(Rows& rows) {
  const auto row = [&](Op op, std::string_view name, std::uint32_t traits, auto infer, auto evaluate,
                       std::string_view help, std::vector<AttributeInfo> attributes = {}) {
    add(rows, op, name, 2, 2, traits, std::move(attributes), infer, evaluate, help);
  };
  row(Op::add, "add", commutative, infer_arithmetic, evaluate_binary, "a + b");
  row(Op::sub, "sub", pointwise, infer_arithmetic, evaluate_binary, "a - b");
  row(Op::mul, "mul", commutative, infer_arithmetic, evaluate_binary, "a b");
  row(Op::div, "div", pointwise, infer_arithmetic, evaluate_binary,
      "a / b; integers truncate toward zero, and x / 0 is 0 for them");
  row(Op::pow, "pow", pointwise, infer_arithmetic, evaluate_binary, "a^b");
  row(Op::mod, "mod", pointwise, infer_arithmetic, evaluate_binary, "remainder; integer x mod 0 is 0",
      {integer("fmod", 0, "0: sign of the divisor, 1: sign of the dividend")});
  row(Op::minimum, "minimum", commutative, infer_arithmetic, evaluate_binary, "the smaller; NaN wins");
  row(Op::maximum, "maximum", commutative, infer_arithmetic, evaluate_binary, "the larger; NaN wins");
  row(Op::equal, "equal", symmetric_comparison, infer_equality, evaluate_compare, "a == b");
  row(Op::less, "less", comparison, infer_ordering, evaluate_compare, "a < b");
  row(Op::less_equal, "less_equal", comparison, infer_ordering, evaluate_compare, "a <= b");
  row(Op::greater, "greater", comparison, infer_ordering, evaluate_compare, "a > b");
  row(Op::greater_equal, "greater_equal", comparison, infer_ordering, evaluate_compare, "a >= b");
  row(Op::logical_and, "logical_and", commutative, infer_logical, evaluate_binary, "and");
  row(Op::logical_or, "logical_or", commutative, infer_logical, evaluate_binary, "or");
  row(Op::logical_xor, "logical_xor", commutative, infer_logical, evaluate_binary, "exclusive or");
  row(Op::bitwise_and, "bitwise_and", commutative, infer_bitwise, evaluate_binary, "and of bits");
  row(Op::bitwise_or, "bitwise_or", commutative, infer_bitwise, evaluate_binary, "or of bits");
  row(Op::bitwise_xor, "bitwise_xor", commutative, infer_bitwise, evaluate_binary, "exclusive or of bits");
  row(Op::shift_left, "shift_left", pointwise, infer_bitwise, evaluate_binary,
      "a << b; 0 when b is negative or not below the width");
  row(Op::shift_right, "shift_right", pointwise, infer_bitwise, evaluate_binary,
      "a >> b, keeping the sign of signed integers; beyond the width only the sign is left");
  add(rows, Op::where, "where", 3, 3, pointwise, {}, infer_where, evaluate_where, "condition ? a : b");
}

void add_movement_rows(Rows& rows) {
  add(rows, Op::iota, "iota", 0, 0, bits({OpTrait::creation}),
      {shape(), required("axis", Kind::integer, "the axis that counts"),
       required("dtype", Kind::string, "name of the element type")},
      infer_iota, evaluate_iota, "0, 1, ... along an axis");
  add(rows, Op::reshape, "reshape", 1, 1, view, {shape()}, infer_reshape, evaluate_reshape,
      "the same elements in row-major order");
  add(rows, Op::transpose, "transpose", 1, 1, view,
      {required("perm", Kind::integers, "input axis per output axis")}, infer_transpose, evaluate_transpose,
      "out.dim[i] = x.dim[perm[i]]");
  add(rows, Op::broadcast_to, "broadcast_to", 1, 1, view, {shape()}, infer_broadcast_to,
      evaluate_broadcast_to, "numpy broadcasting");
  add(rows, Op::slice, "slice", 1, 1, view,
      {required("starts", Kind::integers, "first index per axis"),
       required("sizes", Kind::integers, "elements per axis"),
       required("steps", Kind::integers, "step per axis, not 0")},
      infer_slice, evaluate_slice, "out[i] = x[start + i step]");
  add(rows, Op::pad, "pad", 1, 2, movement,
      {required("low", Kind::integers, "elements before, per axis; negative cuts off"),
       required("high", Kind::integers, "elements after, per axis; negative cuts off"),
       {"interior", std::vector<std::int64_t>{}, Kind::integers,
        "elements between neighbours, per axis; empty for none"},
       string("mode", "constant", "constant, reflect, edge or wrap")},
      infer_pad, evaluate_pad, "x inside a border");
  add(rows, Op::concat, "concat", 1, many, movement, {axis()}, infer_concat, evaluate_concat,
      "one after another");
  add(rows, Op::gather, "gather", 2, 2, gathering, {axis()}, infer_gather, evaluate_gather,
      "whole slices of x at indices along an axis");
  add(rows, Op::gather_elements, "gather_elements", 2, 2, gathering, {axis()}, infer_gather_elements,
      evaluate_gather_elements, "out[i][j] = x[indices[i][j]][j] for axis 0");
  add(rows, Op::gather_nd, "gather_nd", 2, 2, gathering, {integer("batch_dims", 0, "leading dims in common")},
      infer_gather_nd, evaluate_gather_nd, "slices of x at index tuples");
  add(rows, Op::scatter_elements, "scatter_elements", 3, 3, scattering, {axis(), scatter_reduction()},
      infer_scatter_elements, evaluate_scatter_elements, "x with elements replaced or combined");
  add(rows, Op::scatter_nd, "scatter_nd", 3, 3, scattering, {scatter_reduction()}, infer_scatter_nd,
      evaluate_scatter_nd, "x with slices at index tuples replaced or combined");
  add(rows, Op::to_layout, "to_layout", 1, 1, movement,
      {required("block", Kind::integer, "channels per block, 0 for dense")}, infer_to_layout,
      evaluate_identity, "the same values in another layout");
}

void add_reduction_rows(Rows& rows) {
  const AttributeInfo axes = required("axes", Kind::integers, "axes to fold, sorted");
  const AttributeInfo select_last = integer("select_last", 0, "1: of equal values the last");
  const auto reduce = [&](Op op, std::string_view name, std::string_view help) {
    add(rows, op, name, 1, 1, reduction, {axes, keepdims()}, infer_reduce, evaluate_reduce, help);
  };
  reduce(Op::reduce_sum, "reduce_sum", "sum; 0 when there is nothing to add");
  reduce(Op::reduce_max, "reduce_max", "largest; NaN wins");
  reduce(Op::reduce_min, "reduce_min", "smallest; NaN wins");
  reduce(Op::reduce_prod, "reduce_prod", "product; 1 when there is nothing to multiply");
  add(rows, Op::arg_max, "arg_max", 1, 1, reduction, {axis(), keepdims(), select_last}, infer_arg_reduce,
      evaluate_arg_reduce, "i64 index of the largest");
  add(rows, Op::arg_min, "arg_min", 1, 1, reduction, {axis(), keepdims(), select_last}, infer_arg_reduce,
      evaluate_arg_reduce, "i64 index of the smallest");
  const std::vector<AttributeInfo> scan_attributes = {
      axis(), integer("exclusive", 0, "1: without the element itself"),
      integer("reverse", 0, "1: from the end")};
  add(rows, Op::cumsum, "cumsum", 1, 1, scan, scan_attributes, infer_scan, evaluate_scan, "running sum");
  add(rows, Op::cumprod, "cumprod", 1, 1, scan, scan_attributes, infer_scan, evaluate_scan,
      "running product");
  add(rows, Op::top_k, "top_k", 1, 1, plain,
      {axis(), required("k", Kind::integer, "how many"), integer("largest", 1, "0: the smallest")},
      infer_top_k, evaluate_top_k,
      "sorted values and their i64 indices; of equal ones the lower index first");
}

void add_normalization_rows(Rows& rows) {
  add(rows, Op::softmax, "softmax", 1, 1, normalization, {axis()}, infer_softmax, evaluate_softmax,
      "e^x over its sum along an axis");
  add(rows, Op::log_softmax, "log_softmax", 1, 1, normalization, {axis()}, infer_softmax, evaluate_softmax,
      "logarithm of softmax");
  add(rows, Op::layer_norm, "layer_norm", 1, 3, normalization, {axis(), epsilon()}, infer_axis_norm,
      evaluate_axis_norm, "(x - mean)/sqrt(variance + epsilon) scale + bias over axis to last");
  add(rows, Op::rms_norm, "rms_norm", 1, 2, normalization, {axis(), epsilon()}, infer_axis_norm,
      evaluate_axis_norm, "x/sqrt(mean of squares + epsilon) scale over axis to last");
  add(rows, Op::batch_norm, "batch_norm", 5, 5, normalization, {epsilon()}, infer_batch_norm,
      evaluate_batch_norm, "(x - mean)/sqrt(variance + epsilon) scale + bias per channel");
}

void add_contraction_rows(Rows& rows) {
  add(rows, Op::matmul, "matmul", 2, 2, bits({OpTrait::matmul}), {}, infer_matmul, evaluate_matmul,
      "product of matrices, leading dims broadcast");
  add(rows, Op::quantized_matmul, "quantized_matmul", 4, 4, bits({OpTrait::matmul}), {},
      infer_quantized_matmul, evaluate_quantized_matmul,
      "rows of f32, quantised when they are read, times a matrix of i8 with scales");
  add(rows, Op::conv, "conv", 2, 3, bits({OpTrait::convolution}),
      {strides(), pads(), dilations(), integer("groups", 1, "groups of channels")}, infer_conv, evaluate_conv,
      "cross-correlation of N,C,spatial with O,C/groups,spatial");
  add(rows, Op::max_pool, "max_pool", 1, 1, bits({OpTrait::pooling}),
      {kernel(), strides(), pads(), dilations()}, infer_pool, evaluate_pool, "largest in a window; NaN wins");
  add(rows, Op::avg_pool, "avg_pool", 1, 1, bits({OpTrait::pooling}),
      {kernel(), strides(), pads(), dilations(),
       integer("count_include_pad", 0, "1: padding counts as zeros")},
      infer_pool, evaluate_pool, "mean of a window");
  add(rows, Op::attention, "attention", 3, 4, bits({OpTrait::attention}),
      {real("scale", 0, "0 means 1/sqrt(D)"), integer("causal", 0, "1: position l sees s <= l"),
       real("softcap", 0, "c > 0: scores become c tanh(score/c) before the mask")},
      infer_attention, evaluate_attention, "softmax(q k^T scale + mask) v");
}

Rows make_rows() {
  Rows rows;
  add_unary_rows(rows);
  add_binary_rows(rows);
  add_movement_rows(rows);
  add_reduction_rows(rows);
  add_normalization_rows(rows);
  add_contraction_rows(rows);
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
