// Steps of quantised values: rounding without divisions.

#include <cmath>
#include <limits>
#include <random>

#include "tests/support/run_kernel.h"

namespace sylvite::rounding_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

/// Quotients that are halves, and their neighbours, of scales of every size: what stands for a division must round them as
/// it does.
TEST(Rounding, InUnitsOfAScaleIsThatOfADivision) {
  constexpr std::int64_t scales = 64, steps = 300, neighbours = 7;
  std::mt19937 generator(1);
  Tensor x(DType::f32, {scales, steps * neighbours}), scale(DType::f32, {scales, 1});
  for (std::int64_t row = 0; row < scales; ++row) {
    const auto mantissa = static_cast<float>(0x800000 + (row == 0 ? 0x7fffff : generator() % 0x800000));
    const float unit = std::ldexp(mantissa, static_cast<int>(generator() % 200) - 123);
    scale.set_double(row, unit);
    for (std::int64_t step = 0; step < steps; ++step) {
      float value = unit * (static_cast<float>(step) - 149.5F);
      for (std::int64_t i = 0; i < neighbours / 2; ++i) value = std::nextafter(value, -INFINITY);
      for (std::int64_t i = 0; i < neighbours; ++i, value = std::nextafter(value, INFINITY))
        x.set_double((row * steps + step) * neighbours + i, value);
    }
    const std::int64_t first = row * steps * neighbours;
    x.set_double(first, nan);
    x.set_double(first + 1, infinity);
    x.set_double(first + 2, -infinity);
  }
  for (const std::string to : {"u8", "i8", "u16", "i16"}) {
    Tensor zero(parse_dtype(to), {});
    zero.set_int64(0, 3);
    const std::string columns = std::to_string(steps * neighbours);
    check_kernel(fmt::format("graph g(%x: f32[64,{0}], %w0: f32[64,1], %w1: {1}[]) {{\n"
                             "  %y: {1}[64,{0}] = round(%x, %w0, %w1) {{to=\"{1}\"}}\n  return %y\n}}\n",
                             columns, to),
                 {x, scale, zero}, 0);
  }
}

/// A function of what steps stand for, their scale an argument: limits that Halide follows through it have no end.
TEST(Rounding, FunctionsOfStepsCompile) {
  check_kernel(
      "graph g(%x: f32[4,40], %w0: f32[], %w1: u8[], %w2: f32[]) {\n"
      "  %q: u8[4,40] = round(%x, %w0, %w1) {to=\"u8\"}\n"
      "  %a: f32[4,40] = cast(%q) {to=\"f32\"}\n"
      "  %b: f32[4,40] = sub(%a, %w2)\n"
      "  %c: f32[4,40] = mul(%b, %w0)\n"
      "  %d: u8[4,40] = round(%c, %w0, %w1) {to=\"u8\"}\n"
      "  %e: f32[4,40] = cast(%d) {to=\"f32\"}\n"
      "  %f: f32[4,40] = sub(%e, %w2)\n"
      "  %g: f32[4,40] = mul(%f, %w0)\n"
      "  %h: f32[4,40] = gelu(%g) {approximate=\"none\"}\n"
      "  %y: u8[4,40] = round(%h, %w0, %w1) {to=\"u8\"}\n"
      "  return %y\n}\n",
      {random_inputs(kernel_of("graph g(%x: f32[4,40]) {\n  return %x\n}\n")).at(0),
       Tensor::scalar_f32(0.02F), Tensor(DType::u8, {}), Tensor::scalar_f32(0)});
}

TEST(Rounding, SmallIntegersAreTheSameFloats) {
  for (const DType type : {DType::i8, DType::u8, DType::i16, DType::u16}) {
    const int low = is_signed_integer(type) ? -(1 << (dtype_bits(type) - 1)) : 0;
    Tensor x(type, {1 << dtype_bits(type)});
    for (std::int64_t i = 0; i < x.size(); ++i) x.set_int64(i, low + i);
    check_kernel(
        fmt::format("graph g(%x: {}[{}]) {{\n  %y: f32[{}] = cast(%x) {{to=\"f32\"}}\n  return %y\n}}\n",
                    dtype_name(type), x.size(), x.size()),
        {x}, 0);
  }
}

}  // namespace
}  // namespace sylvite::rounding_test
