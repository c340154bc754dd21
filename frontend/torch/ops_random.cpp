// Draws of random numbers: functions of a seed and of the place in the result, so that the same seed gives the same draws.
// `stream` tells draws with one seed apart. torch knows these operations from the package's torch_random.py.

#include <cmath>
#include <limits>
#include <numbers>

#include "frontend/torch/torch_ops.h"

namespace sylvite {
namespace {

/// 32 bits for each element: the draw of that number where an element takes several.
Sym random_bits(TorchContext& c, int number = 0) {
  const Dims dims = c.result_dims();
  std::int64_t size = 1;
  for (const std::int64_t extent : dims) size *= extent;
  constexpr int most_numbers = 2;
  const bool is_short = size <= std::numeric_limits<std::int32_t>::max() / most_numbers;
  Sym index = c.builder().iota(is_short ? DType::i32 : DType::i64, {size}, 0);
  if (number > 0) index = index + static_cast<double>(size * number);
  const Sym seed = reshape(c.tensor("seed"), {});
  return c.builder().add(Op::random_bits, {reshape(index, dims), seed}, {{"stream", c.integer("stream")}});
}

/// The upper `count` bits as a float, which has that many digits.
Sym upper_bits(Sym bits, int count, DType dtype) {
  const Sym shift = bits.builder().scalar(DType::u32, 32 - count);
  return cast(cast(apply(Op::shift_right, bits, shift), DType::i32), dtype);
}

/// In [0, 1): each multiple of 2^-digits as often as any other.
Sym uniform_values(TorchContext& c, DType dtype) {
  if (dtype == DType::f64) {
    const Sym upper = upper_bits(random_bits(c), 27, dtype);
    const Sym lower = upper_bits(random_bits(c, 1), 26, dtype);
    return (upper * std::ldexp(1.0, 26) + lower) * std::ldexp(1.0, -53);
  }
  const int digits = dtype == DType::bf16 ? 8 : (dtype == DType::f16 ? 11 : 24);
  return cast(upper_bits(random_bits(c), digits, DType::f32) * std::ldexp(1.0, -digits), dtype);
}

void ignore_type(TorchContext& c) {
  for (const std::string_view name : {"size", "dtype"}) c.ignore(name);
}

void random_uniform(TorchContext& c) {
  ignore_type(c);
  c.output(uniform_values(c, c.result_dtype()));
}

/// Box and Muller's transform: the length from all 32 bits, so that far values come up.
void random_normal(TorchContext& c) {
  ignore_type(c);
  const DType wide = c.result_dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Sym above_zero = (cast(random_bits(c), wide) + 1.0) * std::ldexp(1.0, -32);
  const Sym length = apply(Op::sqrt, apply(Op::log, above_zero) * -2.0);
  const Sym turn = upper_bits(random_bits(c, 1), 24, wide) * (2 * std::numbers::pi * std::ldexp(1.0, -24));
  c.output(cast(length * apply(Op::cos, turn), c.result_dtype()));
}

/// low, ..., high - 1. The bits are scaled where their number allows, else the rest of a division is taken, as torch does.
void random_integers(TorchContext& c) {
  ignore_type(c);
  const std::int64_t low = c.integer("low");
  const auto range = static_cast<std::uint64_t>(c.integer("high")) - static_cast<std::uint64_t>(low);
  const auto number = [&](std::uint64_t value) {
    return c.builder().constant(Tensor::of(DType::u64, {}, std::vector<std::uint64_t>{value}));
  };
  Sym value = cast(random_bits(c), DType::u64);
  if (range <= std::uint64_t{1} << 32) {
    value = apply(Op::shift_right, value * number(range), number(32));
  } else {
    value = apply(Op::shift_left, value, number(32)) + cast(random_bits(c, 1), DType::u64);
    value = apply(Op::mod, value, number(range));
  }
  c.output(cast(cast(value, DType::i64) +
                    c.builder().constant(Tensor::of(DType::i64, {}, std::vector<std::int64_t>{low})),
                c.result_dtype()));
}

constexpr std::string_view random_schema = "seed size stream dtype";

const TorchOp random_rows[] = {
    {"sylvite.random_integers.default", "seed size stream low high dtype", random_integers},
    {"sylvite.random_normal.default", random_schema, random_normal},
    {"sylvite.random_uniform.default", random_schema, random_uniform},
};

}  // namespace

std::span<const TorchOp> torch_random_ops() {
  return random_rows;
}

}  // namespace sylvite
