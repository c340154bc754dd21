// Arithmetic, comparison, logic and casts.

#include <onnx-ml.pb.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/error.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/tensor.h"
#include "frontend/values/size_facts.h"

namespace sylvite {
namespace {

/// Whole numbers, as sizes are, that two operands have pair by pair; none where they are other values.
std::vector<Dims> whole_numbers(Sym x, Sym y) {
  constexpr std::int64_t few = 8;
  constexpr double most = 1 << 30;
  std::vector<Dims> pairs;
  if (!x.is_constant() || !y.is_constant()) return {};
  const Tensor &left = x.constant(), &right = y.constant();
  if (std::min(left.size(), right.size()) == 0 || std::max(left.size(), right.size()) > few) return {};
  for (std::int64_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    Dims& pair = pairs.emplace_back();
    for (const Tensor* side : {&left, &right}) {
      const double value = side->as_double(i % side->size());
      if (std::floor(value) != value || std::abs(value) > most) return {};
      pair.push_back(static_cast<std::int64_t>(value));
    }
  }
  return pairs;
}

/// An operation on sizes, by numbers and by expressions.
template <typename Number>
Number of_sizes(Op op, const Number& a, const Number& b) {
  using std::max, std::min;
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::minimum:
      return min(a, b);
    default:
      return max(a, b);
  }
}

/// What a model computes of its sizes is pads and bounds of slices later, which follow from them.
void note_sum(Op op, Sym x, Sym y) {
  if (x.dtype() != DType::i64 && x.dtype() != DType::i32) return;
  const auto decide = [op](const Dims& all) { return Dims{of_sizes(op, all.at(0), all.at(1))}; };
  const DecisionAsExtents follow = [op](const std::vector<Extent>& all) {
    return FollowingExtents{{of_sizes(op, all.at(0), all.at(1))}, {}, true};
  };
  const std::string rule(op_info(op).name);
  for (const Dims& pair : whole_numbers(x, y)) (void)decide_by_sizes(rule, pair, decide, follow);
}

Sym apply_noted(Op op, Sym x, Sym y) {
  note_sum(op, x, y);
  return apply(op, x, y);
}

template <Op op>
void binary(ImportContext& c) {
  const auto [x, y] = broadcast_operands(c);
  c.output(apply(op, x, y));
}

template <Op op>
void arithmetic(ImportContext& c) {
  const auto [x, y] = broadcast_operands(c);
  c.output(apply_noted(op, x, y));
}

/// Sum, Max and Min take any number of inputs.
template <Op op>
Sym fold_inputs(ImportContext& c) {
  Sym result = c.input(0);
  for (int i = 1; i < c.input_count(); ++i) result = apply_noted(op, result, c.input(i));
  return result;
}

template <Op op>
void variadic(ImportContext& c) {
  c.output(fold_inputs<op>(c));
}

void mean(ImportContext& c) {
  c.output(fold_inputs<Op::add>(c) / static_cast<double>(c.input_count()));
}

/// What numbers of sizes are divided by leaves remainders, which plans at other sizes have otherwise. Exporters divide sizes as
/// floats, too, and round later, up or down.
void note_quotients(ImportContext& c, bool of_remainders) {
  const Sym x = c.input(0), y = c.input(1);
  const bool is_integer = x.dtype() == DType::i64 || x.dtype() == DType::i32;
  if (!is_integer && (of_remainders || x.dtype() != DType::f32)) return;
  const auto decide = [of_remainders, is_integer](const Dims& all) {
    const std::int64_t divisor = all.at(1);
    if (divisor <= 0) return Dims{0};
    const std::int64_t rest = (all[0] % divisor + divisor) % divisor, below = (all[0] - rest) / divisor;
    if (of_remainders) return Dims{rest};
    if (is_integer) return Dims{all[0] / divisor};
    return Dims{below, below + (rest > 0 ? 1 : 0)};
  };
  const DecisionAsExtents follow = [of_remainders,
                                    is_integer](const std::vector<Extent>& all) -> FollowingExtents {
    if (!all.at(1).is_known() || all[1].known() <= 0) return {};
    const std::int64_t divisor = all[1].known();
    if (of_remainders) return {{mod(all[0], divisor)}, {}};
    const Extent below = floor_div(all[0], divisor), above = ceil_div(all[0], divisor);
    if (is_integer) return {{}, {below}};
    return {{above * divisor - all[0]}, {below, above}};
  };
  const std::string rule = of_remainders ? "remainder" : is_integer ? "quotient" : "rounded quotients";
  for (const Dims& pair : whole_numbers(x, y)) (void)decide_by_sizes(rule, pair, decide, follow);
}

void divide(ImportContext& c) {
  note_quotients(c, false);
  binary<Op::div>(c);
}

void remainder(ImportContext& c) {
  const std::int64_t fmod = c.integer("fmod", 0);
  if (fmod == 0) note_quotients(c, true);
  c.output(c.builder().add(Op::mod, {c.input(0), c.input(1)}, {{"fmod", fmod}}));
}

/// The exponent may have another type than the base, which decides the result's.
void power(ImportContext& c) {
  const auto [base, exponent] = broadcast_operands(c);
  if (base.dtype() == exponent.dtype()) return c.output(apply(Op::pow, base, exponent));
  const DType common = is_float(base.dtype()) ? base.dtype() : exponent.dtype();
  c.output(cast(apply(Op::pow, cast(base, common), cast(exponent, common)), base.dtype()));
}

void bit_shift(ImportContext& c) {
  const std::string direction = c.string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    throw ModelError("direction '{}' is neither LEFT nor RIGHT", direction);
  c.output(apply(direction == "LEFT" ? Op::shift_left : Op::shift_right, c.input(0), c.input(1)));
}

void is_inf(ImportContext& c) {
  c.output(c.builder().add(Op::is_inf, {c.input(0)},
                           {{"detect_positive", c.integer("detect_positive", 1)},
                            {"detect_negative", c.integer("detect_negative", 1)}}));
}

/// To a power of two as round_mode says. The core cast rounds up, so the others go there before it.
Sym round_to_power(Sym x, const std::string& mode) {
  if (mode == "up") return x;
  if (mode != "down" && mode != "nearest") throw ModelError("round_mode is '{}'", mode);
  GraphBuilder& b = x.builder();
  constexpr std::int64_t exponent_bits = 0x7f800000;
  constexpr std::int64_t half_bit = 0x00400000;
  const auto reread = [&](Sym value, DType dtype) {
    return b.add(Op::bitcast, {value}, {{"to", std::string(dtype_name(dtype))}});
  };
  Sym bits = reread(cast(x, DType::f32), DType::i32);
  if (mode == "nearest") bits = bits + static_cast<double>(half_bit);
  const Sym power = reread(apply(Op::bitwise_and, bits, static_cast<double>(exponent_bits)), DType::f32);
  const Sym is_special = apply(Op::logical_or, apply(Op::is_nan, x), apply(Op::less, x, 0.0));
  return where(is_special, std::numeric_limits<double>::quiet_NaN(), power);
}

/// What is too large for a narrow float becomes its largest number, unless attribute saturate is 0.
Sym convert(ImportContext& c, Sym x, DType to) {
  if (!is_narrow_float(to) || to == x.dtype()) return cast(x, to);
  if (x.dtype() != DType::f64) x = cast(x, DType::f32);
  if (to == DType::f8e8m0) x = round_to_power(x, c.string("round_mode", "up"));
  return c.integer("saturate", 1) != 0 ? cast(saturated(x, to), to) : cast(x, to);
}

/// Each text as a number, by C's rules.
void numbers_of_texts(ImportContext& c, DType to) {
  const Texts texts = c.texts(0);
  Tensor table(to, {static_cast<std::int64_t>(texts.list->size())});
  for (std::int64_t i = 0; i < table.size(); ++i) {
    const std::string& text = (*texts.list)[static_cast<std::size_t>(i)];
    char* end = nullptr;
    if (is_float(to))
      table.set_double(i, std::strtod(text.c_str(), &end));
    else
      table.set_int64(i, std::strtoll(text.c_str(), &end, 10));
    if (text.empty() || *end != '\0') throw ModelError("'{}' is no number", text);
  }
  c.output(gather(c.builder().constant(table), texts.places, 0));
}

/// Floats with as many digits as tell them apart for people: 8, doubles 17.
std::string text_of(const Tensor& x, std::int64_t i) {
  if (!is_float(x.dtype())) return std::to_string(x.as_int64(i));
  const double number = x.as_double(i);
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-INF" : "INF";
  return x.dtype() == DType::f64 ? fmt::format("{:.17g}", number) : fmt::format("{:.8g}", number);
}

void write_numbers(ImportContext& c) {
  if (!c.builder().known(c.input(0))) c.wait_for_run("writes numbers as texts");
  const Tensor x = c.constant(0);
  c.builder().reserve_table({4 * x.size()});
  StringTensor result{x.dims(), {}};
  for (std::int64_t i = 0; i < x.size(); ++i) result.values.push_back(text_of(x, i));
  c.output_strings(0, std::move(result));
}

void cast_op(ImportContext& c) {
  const auto to = static_cast<int>(c.required_integer("to"));
  const bool gives_texts = to == onnx::TensorProto::STRING;
  if (c.is_strings(0))
    return gives_texts ? c.output_texts(0, c.texts(0)) : numbers_of_texts(c, dtype_of_onnx(to));
  if (gives_texts) return write_numbers(c);
  c.output(convert(c, c.input(0), dtype_of_onnx(to)));
}

void cast_like(ImportContext& c) {
  c.output(convert(c, c.input(0), c.input(1).dtype()));
}

void bit_cast(ImportContext& c) {
  const DType to = dtype_of_onnx(static_cast<int>(c.required_integer("to")));
  const Sym x = c.input(0);
  if (x.dtype() == to) return c.output(x);
  c.output(c.builder().add(Op::bitcast, {x}, {{"to", std::string(dtype_name(to))}}));
}

/// Bounds are attributes up to opset 10, optional inputs from 11 on.
void clip(ImportContext& c) {
  Sym x = c.input(0);
  if (c.opset() >= 11) {
    if (const Sym low = c.optional(1)) x = apply_noted(Op::maximum, x, low);
    if (const Sym high = c.optional(2)) x = apply_noted(Op::minimum, x, high);
  } else {
    if (c.has_attribute("min")) x = apply(Op::maximum, x, c.real("min", 0));
    if (c.has_attribute("max")) x = apply(Op::minimum, x, c.real("max", 0));
  }
  c.output(x);
}

void where_op(ImportContext& c) {
  c.output(where(c.input(0), c.input(1), c.input(2)));
}

void identity(ImportContext& c) {
  c.output_binding(0, c.binding(0));
}

const OnnxOp pointwise_rows[] = {
    {"Abs", 1, unary_op<Op::abs>},
    {"Acos", 7, unary_op<Op::acos>},
    {"Acosh", 9, unary_op<Op::acosh>},
    {"Add", 7, arithmetic<Op::add>},
    {"And", 7, binary<Op::logical_and>},
    {"Asin", 7, unary_op<Op::asin>},
    {"Asinh", 9, unary_op<Op::asinh>},
    {"Atan", 7, unary_op<Op::atan>},
    {"Atanh", 9, unary_op<Op::atanh>},
    {"BitCast", 26, bit_cast},
    {"BitShift", 11, bit_shift},
    {"BitwiseAnd", 18, binary<Op::bitwise_and>},
    {"BitwiseNot", 18, unary_op<Op::bitwise_not>},
    {"BitwiseOr", 18, binary<Op::bitwise_or>},
    {"BitwiseXor", 18, binary<Op::bitwise_xor>},
    {"Cast", 6, cast_op},
    {"CastLike", 15, cast_like},
    {"Ceil", 6, unary_op<Op::ceil>},
    {"Clip", 6, clip},
    {"Cos", 7, unary_op<Op::cos>},
    {"Cosh", 9, unary_op<Op::cosh>},
    {"Div", 7, divide},
    {"Erf", 9, unary_op<Op::erf>},
    {"Exp", 6, unary_op<Op::exp>},
    {"Floor", 6, unary_op<Op::floor>},
    {"Greater", 7, binary<Op::greater>},
    {"GreaterOrEqual", 12, binary<Op::greater_equal>},
    {"Identity", 1, identity},
    {"IsInf", 10, is_inf},
    {"IsNaN", 9, unary_op<Op::is_nan>},
    {"Less", 7, binary<Op::less>},
    {"LessOrEqual", 12, binary<Op::less_equal>},
    {"Log", 6, unary_op<Op::log>},
    {"Max", 6, variadic<Op::maximum>},
    {"Mean", 6, mean},
    {"Min", 6, variadic<Op::minimum>},
    {"Mod", 10, remainder},
    {"Mul", 7, arithmetic<Op::mul>},
    {"Neg", 6, unary_op<Op::neg>},
    {"Not", 1, unary_op<Op::logical_not>},
    {"Or", 7, binary<Op::logical_or>},
    {"Pow", 7, power},
    {"Reciprocal", 6, unary_op<Op::reciprocal>},
    {"Round", 11, unary_op<Op::round>},
    {"Sign", 9, unary_op<Op::sign>},
    {"Sin", 7, unary_op<Op::sin>},
    {"Sinh", 9, unary_op<Op::sinh>},
    {"Sqrt", 6, unary_op<Op::sqrt>},
    {"Sub", 7, arithmetic<Op::sub>},
    {"Sum", 6, variadic<Op::add>},
    {"Tan", 7, unary_op<Op::tan>},
    {"Where", 9, where_op},
    {"Xor", 7, binary<Op::logical_xor>},
};

}  // namespace

std::pair<Sym, Sym> broadcast_operands(ImportContext& c) {
  const Sym x = c.input(0), y = c.input(1);
  if (c.opset() >= 7 || !c.has_attribute("axis")) return {x, y};
  const int axis = normalize_axis(c.integer("axis", 0), x.rank());
  if (axis + y.rank() > x.rank())
    throw ModelError("an operand of rank {} does not fit at axis {} of one of rank {}", y.rank(), axis,
                     x.rank());
  Dims dims = y.dims();
  dims.resize(static_cast<std::size_t>(x.rank() - axis), 1);
  return {x, reshape(y, dims)};
}

std::span<const OnnxOp> onnx_pointwise_ops() {
  return pointwise_rows;
}

}  // namespace sylvite
