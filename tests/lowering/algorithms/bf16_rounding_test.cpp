#include "lowering/algorithms/bf16_rounding.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

namespace sylvite::bf16_rounding_test {
namespace {

using Halide::bfloat16_t;

Halide::Buffer<bfloat16_t> rounded(const Halide::Expr& value, const Halide::Var& x, int lanes, int count) {
  Halide::Func func;
  func(x) = value;
  if (lanes > 1) func.vectorize(x, lanes);
  Halide::Pipeline pipeline(func);
  pipeline.add_custom_lowering_pass(new RoundByInstruction());
  return pipeline.realize({count});
}

// Ties, the largest numbers, infinities and NaNs with and without the upper bits; numbers below 2^-126 aside.
TEST(Bf16Rounding, InstructionAndIntegersGiveTheSameBits) {
  const Halide::Target host = Halide::get_host_target();
  if (!host.features_any_of({Halide::Target::AVX512_Zen4, Halide::Target::AVX512_SapphireRapids}))
    GTEST_SKIP() << "the processor has no AVX512_BF16";
  constexpr int count = 480;
  Halide::Buffer<float> source(count);
  std::mt19937 generator(1);
  for (int i = 0; i < count; ++i) {
    std::uint32_t bits = static_cast<std::uint32_t>(generator()) | 0x00800000;
    if (i % 7 == 0) bits = (bits & 0xffff0000) | 0x8000;
    source(i) = std::bit_cast<float>(bits);
  }
  int next = 0;
  for (const std::uint32_t bits :
       {0x7fffffffU, 0xff800001U, 0x7f800000U, 0xff800000U, 0x7f7fffffU, 0x80000000U})
    source(next++) = std::bit_cast<float>(bits);
  for (const int lanes : {1, 4, 16, 32, 48}) {
    const Halide::Var x("x");
    const auto actual = rounded(call_of_bf16_rounding(source(x)), x, lanes, count);
    const auto expected = rounded(rounded_to_bf16(source(x)), x, lanes, count);
    for (int i = 0; i < count; ++i)
      ASSERT_EQ(actual(i).to_bits(), expected(i).to_bits()) << lanes << " lanes, " << source(i);
  }
}

}  // namespace
}  // namespace sylvite::bf16_rounding_test
