// Reference semantics of pointwise operations.

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "frontend/ops/evaluate.h"
#include "frontend/values/storage.h"

namespace sylvite {
namespace {

template <typename C>
using Unary = C (*)(C);
template <typename C>
using Binary = C (*)(C, C);
template <typename C>
using Predicate = bool (*)(C, C);

double gelu(double x) {
  return 0.5 * x * std::erfc(-x * M_SQRT1_2);
}

double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(M_2_PI) * (x + 0.044715 * x * x * x)));
}

double clamp01(double x) {
  return x < 0 ? 0 : (x > 1 ? 1 : x);
}  // NaN stays

Unary<double> real_unary(Op op) {
  switch (op) {
    case Op::neg:
      return [](double x) { return -x; };
    case Op::abs:
      return [](double x) { return std::fabs(x); };
    case Op::sign:
      return [](double x) { return x > 0 ? 1.0 : (x < 0 ? -1.0 : x); };
    case Op::floor:
      return [](double x) { return std::floor(x); };
    case Op::ceil:
      return [](double x) { return std::ceil(x); };
    case Op::round:
      return [](double x) { return std::nearbyint(x); };
    case Op::sqrt:
      return [](double x) { return std::sqrt(x); };
    case Op::rsqrt:
      return [](double x) { return 1 / std::sqrt(x); };
    case Op::reciprocal:
      return [](double x) { return 1 / x; };
    case Op::exp:
      return [](double x) { return std::exp(x); };
    case Op::log:
      return [](double x) { return std::log(x); };
    case Op::sin:
      return [](double x) { return std::sin(x); };
    case Op::cos:
      return [](double x) { return std::cos(x); };
    case Op::tan:
      return [](double x) { return std::tan(x); };
    case Op::asin:
      return [](double x) { return std::asin(x); };
    case Op::acos:
      return [](double x) { return std::acos(x); };
    case Op::atan:
      return [](double x) { return std::atan(x); };
    case Op::sinh:
      return [](double x) { return std::sinh(x); };
    case Op::cosh:
      return [](double x) { return std::cosh(x); };
    case Op::tanh:
      return [](double x) { return std::tanh(x); };
    case Op::asinh:
      return [](double x) { return std::asinh(x); };
    case Op::acosh:
      return [](double x) { return std::acosh(x); };
    case Op::atanh:
      return [](double x) { return std::atanh(x); };
    case Op::erf:
      return [](double x) { return std::erf(x); };
    case Op::sigmoid:
      return [](double x) { return 1 / (1 + std::exp(-x)); };
    case Op::relu:
      return [](double x) { return x < 0 ? 0 : x; };
    case Op::gelu:
      return gelu;
    case Op::silu:
      return [](double x) { return x / (1 + std::exp(-x)); };
    case Op::hard_swish:
      return [](double x) { return x * clamp01(x / 6 + 0.5); };
    case Op::softplus:
      return [](double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); };
    default:
      throw InternalError("{} is not an operation on floats", op_info(op).name);
  }
}

template <typename C>
Unary<C> integer_unary(Op op) {
  switch (op) {
    case Op::neg:
      return [](C x) { return static_cast<C>(0 - static_cast<std::uint64_t>(x)); };
    case Op::abs:
      return [](C x) { return x < 0 ? static_cast<C>(0 - static_cast<std::uint64_t>(x)) : x; };
    case Op::sign:
      return [](C x) { return static_cast<C>(x > 0 ? 1 : (x < 0 ? -1 : 0)); };
    case Op::relu:
      return [](C x) { return x < 0 ? C{0} : x; };
    case Op::logical_not:
      return [](C x) { return static_cast<C>(x == 0); };
    case Op::bitwise_not:
      return [](C x) { return static_cast<C>(~x); };
    default:
      throw InternalError("{} is not an operation on integers", op_info(op).name);
  }
}

double python_mod(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

Binary<double> real_binary(Op op) {
  switch (op) {
    case Op::add:
      return [](double a, double b) { return a + b; };
    case Op::sub:
      return [](double a, double b) { return a - b; };
    case Op::mul:
      return [](double a, double b) { return a * b; };
    case Op::div:
      return [](double a, double b) { return a / b; };
    case Op::pow:
      return [](double a, double b) { return std::pow(a, b); };
    case Op::minimum:
      return [](double a, double b) { return std::isnan(a) || a < b ? a : b; };
    case Op::maximum:
      return [](double a, double b) { return std::isnan(a) || a > b ? a : b; };
    default:
      throw InternalError("{} is not an operation on floats", op_info(op).name);
  }
}

std::uint64_t wrapping_power(std::uint64_t base, std::uint64_t exponent) {
  std::uint64_t result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if ((exponent & 1U) != 0) result *= base;
  return result;
}

/// Base to a negative exponent truncates toward zero: only 1 and -1 leave something.
template <typename C>
C integer_power(C base, C exponent) {
  const auto power =
      static_cast<C>(wrapping_power(static_cast<std::uint64_t>(base), static_cast<std::uint64_t>(exponent)));
  if (exponent >= 0 || base == 1) return power;
  if (base == static_cast<C>(-1)) return exponent % 2 == 0 ? C{1} : base;
  return C{0};
}

template <typename C>
C integer_div(C a, C b) {
  if (b == 0) return C{0};
  if (std::is_signed_v<C> && b == static_cast<C>(-1))
    return static_cast<C>(0 - static_cast<std::uint64_t>(a));
  return a / b;
}

template <typename C>
C c_mod(C a, C b) {
  if (b == 0 || (std::is_signed_v<C> && b == static_cast<C>(-1))) return C{0};
  return a % b;
}

template <typename C>
C python_integer_mod(C a, C b) {
  const C remainder = c_mod(a, b);
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

template <typename C>
C shift_left(C a, C b) {
  if (b < 0 || b > 63) return C{0};
  return static_cast<C>(static_cast<std::uint64_t>(a) << static_cast<unsigned>(b));
}

template <typename C>
C shift_right(C a, C b) {
  const bool beyond = b < 0 || b > 63;
  if (beyond) return a < 0 ? static_cast<C>(-1) : C{0};
  return a >> static_cast<unsigned>(b);
}

template <typename C>
Binary<C> integer_binary(Op op) {
  using Bits = std::uint64_t;
  switch (op) {
    case Op::add:
      return [](C a, C b) { return static_cast<C>(static_cast<Bits>(a) + static_cast<Bits>(b)); };
    case Op::sub:
      return [](C a, C b) { return static_cast<C>(static_cast<Bits>(a) - static_cast<Bits>(b)); };
    case Op::mul:
      return [](C a, C b) { return static_cast<C>(static_cast<Bits>(a) * static_cast<Bits>(b)); };
    case Op::div:
      return integer_div<C>;
    case Op::pow:
      return integer_power<C>;
    case Op::minimum:
      return [](C a, C b) { return a < b ? a : b; };
    case Op::maximum:
      return [](C a, C b) { return a > b ? a : b; };
    case Op::logical_and:
    case Op::bitwise_and:
      return [](C a, C b) { return a & b; };
    case Op::logical_or:
    case Op::bitwise_or:
      return [](C a, C b) { return a | b; };
    case Op::logical_xor:
    case Op::bitwise_xor:
      return [](C a, C b) { return a ^ b; };
    case Op::shift_left:
      return shift_left<C>;
    case Op::shift_right:
      return shift_right<C>;
    default:
      throw InternalError("{} is not an operation on integers", op_info(op).name);
  }
}

template <typename C>
Predicate<C> comparison(Op op) {
  switch (op) {
    case Op::equal:
      return [](C a, C b) { return a == b; };
    case Op::less:
      return [](C a, C b) { return a < b; };
    case Op::less_equal:
      return [](C a, C b) { return a <= b; };
    case Op::greater:
      return [](C a, C b) { return a > b; };
    case Op::greater_equal:
      return [](C a, C b) { return a >= b; };
    default:
      throw InternalError("{} is not a comparison", op_info(op).name);
  }
}

template <typename C>
Unary<C> unary_function(Op op, const Attributes& attributes) {
  if constexpr (std::is_same_v<C, double>) {
    if (op == Op::gelu && attributes.string("approximate") == "tanh") return gelu_tanh;
    return real_unary(op);
  } else {
    return integer_unary<C>(op);
  }
}

template <typename C>
Binary<C> binary_function(Op op, const Attributes& attributes) {
  const bool c_style = op == Op::mod && attributes.integer("fmod") != 0;
  if constexpr (std::is_same_v<C, double>) {
    if (op == Op::mod)
      return c_style ? [](double a, double b) { return std::fmod(a, b); } : Binary<C>(python_mod);
    return real_binary(op);
  } else {
    if (op == Op::mod) return c_style ? c_mod<C> : python_integer_mod<C>;
    return integer_binary<C>(op);
  }
}

template <typename C, typename Function>
Tensor map_unary(const Tensor& input, DType dtype, Function function) {
  std::vector<C> values = decode<C>(input);
  for (C& value : values) value = function(value);
  return encode(dtype, input.dims(), values);
}

}  // namespace

OutputTensors evaluate_unary(Op op, InputTensors inputs, const Attributes& attributes, ResultTypes types) {
  const Tensor& input = *inputs[0];
  if (op == Op::hard_sigmoid) {
    const double alpha = attributes.real("alpha");
    const double beta = attributes.real("beta");
    return {map_unary<double>(input, types[0].dtype, [=](double x) { return clamp01(alpha * x + beta); })};
  }
  return {with_arithmetic(input.dtype(), [&](auto zero) {
    using C = decltype(zero);
    return map_unary<C>(input, types[0].dtype, unary_function<C>(op, attributes));
  })};
}

OutputTensors evaluate_classify(Op op, InputTensors inputs, const Attributes& attributes, ResultTypes types) {
  if (op == Op::is_nan) {
    return {
        map_unary<double>(*inputs[0], types[0].dtype, [](double x) { return std::isnan(x) ? 1.0 : 0.0; })};
  }
  const bool positive = attributes.integer("detect_positive") != 0;
  const bool negative = attributes.integer("detect_negative") != 0;
  return {map_unary<double>(*inputs[0], types[0].dtype, [=](double x) {
    return std::isinf(x) && (x > 0 ? positive : negative) ? 1.0 : 0.0;
  })};
}

OutputTensors evaluate_cast(Op, InputTensors inputs, const Attributes&, ResultTypes types) {
  return {with_arithmetic(inputs[0]->dtype(), [&](auto zero) {
    return encode(types[0].dtype, inputs[0]->dims(), decode<decltype(zero)>(*inputs[0]));
  })};
}

/// Numbers of less than a byte keep their low bits; a boolean is true for any bit.
OutputTensors evaluate_bitcast(Op, InputTensors inputs, const Attributes&, ResultTypes types) {
  const Tensor& input = *inputs[0];
  Tensor result(types[0].dtype, input.dims());
  const auto* from = static_cast<const std::uint8_t*>(input.data());
  auto* to = static_cast<std::uint8_t*>(result.mutable_data());
  if (dtype_size(types[0].dtype) > 1) {
    if (input.byte_size() > 0) std::memcpy(to, from, static_cast<std::size_t>(input.byte_size()));
    return {result};
  }
  const int mask = (1 << dtype_bits(types[0].dtype)) - 1;
  for (std::int64_t i = 0; i < input.size(); ++i) {
    to[i] = static_cast<std::uint8_t>(from[i] & mask);
    if (types[0].dtype == DType::boolean) to[i] = to[i] != 0 ? 1 : 0;
    if (types[0].dtype == DType::i4 || types[0].dtype == DType::i2) result.set_int64(i, to[i]);
  }
  return {result};
}

OutputTensors evaluate_binary(Op op, InputTensors inputs, const Attributes& attributes, ResultTypes types) {
  const Dims dims = types[0].dims();
  return {with_arithmetic(inputs[0]->dtype(), [&](auto zero) {
    using C = decltype(zero);
    std::vector<C> a = decode<C>(expand(*inputs[0], dims));
    const std::vector<C> b = decode<C>(expand(*inputs[1], dims));
    const Binary<C> function = binary_function<C>(op, attributes);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = function(a[i], b[i]);
    return encode(types[0].dtype, dims, a);
  })};
}

OutputTensors evaluate_compare(Op op, InputTensors inputs, const Attributes&, ResultTypes types) {
  Tensor result(DType::boolean, types[0].dims());
  with_arithmetic(inputs[0]->dtype(), [&](auto zero) {
    using C = decltype(zero);
    const std::vector<C> a = decode<C>(expand(*inputs[0], result.dims()));
    const std::vector<C> b = decode<C>(expand(*inputs[1], result.dims()));
    const Predicate<C> holds = comparison<C>(op);
    const std::span<bool> out = result.mutable_view<bool>();
    for (std::size_t i = 0; i < a.size(); ++i) out[i] = holds(a[i], b[i]);
  });
  return {result};
}

OutputTensors evaluate_where(Op, InputTensors inputs, const Attributes&, ResultTypes types) {
  const Dims dims = types[0].dims();
  const Tensor condition = expand(*inputs[0], dims);
  const Tensor if_true = expand(*inputs[1], dims);
  const Tensor if_false = expand(*inputs[2], dims);
  Tensor result(types[0].dtype, dims);
  with_storage(types[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const std::span<const bool> choose = condition.view<bool>();
    const std::span<const T> yes = if_true.view<T>();
    const std::span<const T> no = if_false.view<T>();
    const std::span<T> out = result.mutable_view<T>();
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = choose[i] ? yes[i] : no[i];
  });
  return {result};
}

}  // namespace sylvite
