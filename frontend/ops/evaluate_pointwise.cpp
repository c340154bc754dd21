// Reference semantics of pointwise operations.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "frontend/ops/evaluate.h"
#include "frontend/ops/op_table.h"
#include "frontend/ops/philox.h"
#include "frontend/values/storage.h"

namespace sylvite {
namespace {

template <typename C>
using Unary = C (*)(C);
template <typename C>
using Binary = C (*)(C, C);
template <typename C>
using Predicate = bool (*)(C, C);

/// What an operation does to elements of one arithmetic type. An operation that a table lacks is refused by its type
/// rule, or reads attributes: see the functions below.
template <typename Function>
struct Row {
  Op op;
  Function function;
};

template <typename Function, std::size_t count>
Function find_row(const Row<Function> (&rows)[count], Op op) {
  const auto* found = std::ranges::find(rows, op, &Row<Function>::op);
  if (found == std::end(rows)) throw InternalError("{} is not defined for these elements", op_info(op).name);
  return found->function;
}

double gelu(double x) {
  return 0.5 * x * std::erfc(-x * M_SQRT1_2);
}

double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(M_2_PI) * (x + 0.044715 * x * x * x)));
}

double clamp01(double x) {
  return x < 0 ? 0 : (x > 1 ? 1 : x);
}  // NaN stays

constexpr Row<Unary<double>> real_unary[] = {
    {Op::neg, [](double x) { return -x; }},
    {Op::abs, [](double x) { return std::fabs(x); }},
    {Op::sign, [](double x) { return x > 0 ? 1.0 : (x < 0 ? -1.0 : x); }},
    {Op::floor, [](double x) { return std::floor(x); }},
    {Op::ceil, [](double x) { return std::ceil(x); }},
    {Op::round, [](double x) { return std::nearbyint(x); }},
    {Op::sqrt, [](double x) { return std::sqrt(x); }},
    {Op::rsqrt, [](double x) { return 1 / std::sqrt(x); }},
    {Op::reciprocal, [](double x) { return 1 / x; }},
    {Op::exp, [](double x) { return std::exp(x); }},
    {Op::log, [](double x) { return std::log(x); }},
    {Op::sin, [](double x) { return std::sin(x); }},
    {Op::cos, [](double x) { return std::cos(x); }},
    {Op::tan, [](double x) { return std::tan(x); }},
    {Op::asin, [](double x) { return std::asin(x); }},
    {Op::acos, [](double x) { return std::acos(x); }},
    {Op::atan, [](double x) { return std::atan(x); }},
    {Op::sinh, [](double x) { return std::sinh(x); }},
    {Op::cosh, [](double x) { return std::cosh(x); }},
    {Op::tanh, [](double x) { return std::tanh(x); }},
    {Op::asinh, [](double x) { return std::asinh(x); }},
    {Op::acosh, [](double x) { return std::acosh(x); }},
    {Op::atanh, [](double x) { return std::atanh(x); }},
    {Op::erf, [](double x) { return std::erf(x); }},
    {Op::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
    {Op::relu, [](double x) { return x < 0 ? 0 : x; }},
    {Op::gelu, gelu},
    {Op::silu, [](double x) { return x / (1 + std::exp(-x)); }},
    {Op::hard_swish, [](double x) { return x * clamp01(x / 6 + 0.5); }},
    {Op::softplus, [](double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }},
};

template <typename C>
constexpr Row<Unary<C>> integer_unary[] = {
    {Op::neg, [](C x) { return static_cast<C>(0 - static_cast<std::uint64_t>(x)); }},
    {Op::abs, [](C x) { return x < 0 ? static_cast<C>(0 - static_cast<std::uint64_t>(x)) : x; }},
    {Op::sign, [](C x) { return static_cast<C>(x > 0 ? 1 : (x < 0 ? -1 : 0)); }},
    {Op::relu, [](C x) { return x < 0 ? C{0} : x; }},
    {Op::logical_not, [](C x) { return static_cast<C>(x == 0); }},
    // NOLINTNEXTLINE(readability-redundant-casting): not where C is narrower than int
    {Op::bitwise_not, [](C x) { return static_cast<C>(~x); }},
};

double python_mod(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

constexpr Row<Binary<double>> real_binary[] = {
    {Op::add, [](double a, double b) { return a + b; }},
    {Op::sub, [](double a, double b) { return a - b; }},
    {Op::mul, [](double a, double b) { return a * b; }},
    {Op::div, [](double a, double b) { return a / b; }},
    {Op::pow, [](double a, double b) { return std::pow(a, b); }},
    {Op::minimum, [](double a, double b) { return std::isnan(a) || a < b ? a : b; }},
    {Op::maximum, [](double a, double b) { return std::isnan(a) || a > b ? a : b; }},
};

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
constexpr Row<Binary<C>> integer_binary[] = {
    {Op::add,
     [](C a, C b) { return static_cast<C>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b)); }},
    {Op::sub,
     [](C a, C b) { return static_cast<C>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b)); }},
    {Op::mul,
     [](C a, C b) { return static_cast<C>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)); }},
    {Op::div, integer_div<C>},
    {Op::pow, integer_power<C>},
    {Op::minimum, [](C a, C b) { return a < b ? a : b; }},
    {Op::maximum, [](C a, C b) { return a > b ? a : b; }},
    {Op::logical_and, [](C a, C b) { return a & b; }},
    {Op::bitwise_and, [](C a, C b) { return a & b; }},
    {Op::logical_or, [](C a, C b) { return a | b; }},
    {Op::bitwise_or, [](C a, C b) { return a | b; }},
    {Op::logical_xor, [](C a, C b) { return a ^ b; }},
    {Op::bitwise_xor, [](C a, C b) { return a ^ b; }},
    {Op::shift_left, shift_left<C>},
    {Op::shift_right, shift_right<C>},
};

template <typename C>
constexpr Row<Predicate<C>> comparisons[] = {
    {Op::equal, [](C a, C b) { return a == b; }},         {Op::less, [](C a, C b) { return a < b; }},
    {Op::less_equal, [](C a, C b) { return a <= b; }},    {Op::greater, [](C a, C b) { return a > b; }},
    {Op::greater_equal, [](C a, C b) { return a >= b; }},
};

template <typename C>
Unary<C> unary_function(Op op, const Attributes& attributes) {
  if constexpr (std::is_same_v<C, double>) {
    if (op == Op::gelu && attributes.string("approximate") == "tanh") return gelu_tanh;
    return find_row(real_unary, op);
  } else {
    return find_row(integer_unary<C>, op);
  }
}

template <typename C>
Binary<C> binary_function(Op op, const Attributes& attributes) {
  const bool c_style = op == Op::mod && attributes.integer("fmod") != 0;
  if constexpr (std::is_same_v<C, double>) {
    if (op == Op::mod)
      return c_style ? [](double a, double b) { return std::fmod(a, b); } : Binary<C>(python_mod);
    return find_row(real_binary, op);
  } else {
    if (op == Op::mod) return c_style ? c_mod<C> : python_integer_mod<C>;
    return find_row(integer_binary<C>, op);
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
    const Predicate<C> holds = find_row(comparisons<C>, op);
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

OutputTensors evaluate_round(Op op, InputTensors inputs, const Attributes& attributes, ResultTypes types) {
  if (inputs.size() == 1 || inputs[1] == nullptr) return evaluate_unary(op, inputs, attributes, types);
  const Dims dims = types[0].dims();
  const DType to = types[0].dtype;
  const int bits = dtype_bits(to);
  const double low = is_unsigned_integer(to) ? 0 : -std::ldexp(1.0, bits - 1);
  const double high = low + std::ldexp(1.0, bits) - 1;
  const std::vector<float> x = decode<float>(expand(*inputs[0], dims));
  const std::vector<float> scale = decode<float>(expand(*inputs[1], dims));
  std::vector<double> steps(x.size());
  if (inputs.size() > 2 && inputs[2] != nullptr) steps = decode<double>(expand(*inputs[2], dims));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double sum = std::nearbyint(x[i] / scale[i]) + steps[i];
    steps[i] = sum > low ? std::min(sum, high) : low;
  }
  return {encode(to, dims, steps)};
}

OutputTensors evaluate_random_bits(Op, InputTensors inputs, const Attributes& attributes, ResultTypes types) {
  const Dims dims = types[0].dims();
  const std::vector<std::int64_t> index = decode<std::int64_t>(expand(*inputs[0], dims));
  const std::vector<std::int64_t> seed = decode<std::int64_t>(expand(*inputs[1], dims));
  const auto stream = static_cast<std::uint32_t>(attributes.integer("stream"));
  Tensor result(types[0].dtype, dims);
  const std::span<std::uint32_t> out = result.mutable_view<std::uint32_t>();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto [low, high] = philox_words(index[i]);
    out[i] = philox({low, high, stream, 0}, philox_words(seed[i]))[0];
  }
  return {result};
}

}  // namespace sylvite
