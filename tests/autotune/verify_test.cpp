#include "autotune/verify.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "autotune/plausibility.h"
#include "autotune/random_inputs.h"
#include "tests/autotune/sample_kernels.h"

namespace sylvite::verify_test {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

double error_of(const std::vector<float>& actual, const std::vector<float>& expected) {
  Dims dims{static_cast<std::int64_t>(expected.size())};
  return output_error(make_type(DType::f32, dims), Tensor::of(DType::f32, dims, actual),
                      Tensor::of(DType::f32, dims, expected));
}

TEST(Verify, ErrorIsRelativeToScaleAndValue) {
  EXPECT_EQ(error_of({1, 2, 3}, {1, 2, 3}), 0);
  EXPECT_NEAR(error_of({1.1F, 100}, {1, 100}), 0.1 / (1e-4 * 100 + 1e-3), 0.01);
  EXPECT_LT(error_of({100.05F}, {100}), 1);
  EXPECT_GT(error_of({100.2F}, {100}), 1);
  EXPECT_GT(error_of({0.001F, 0}, {0, 0}), 1) << "a scale of zero allows nothing";
}

TEST(Verify, SpecialValuesMustStandAtTheSamePlaces) {
  EXPECT_EQ(error_of({nan, inf, -inf, 1}, {nan, inf, -inf, 1}), 0);
  EXPECT_TRUE(std::isinf(error_of({nan, 1}, {1, 1})));
  EXPECT_TRUE(std::isinf(error_of({1, 1}, {nan, 1})));
  EXPECT_TRUE(std::isinf(error_of({-inf}, {inf})));
}

TEST(Verify, IntegersAreExact) {
  TensorType type = make_type(DType::i64, {2});
  Tensor expected = Tensor::vector_i64({1, 2});
  EXPECT_EQ(output_error(type, Tensor::vector_i64({1, 2}), expected), 0);
  EXPECT_TRUE(std::isinf(output_error(type, Tensor::vector_i64({1, 3}), expected)));
}

TEST(Verify, PaddingIsNotCompared) {
  TensorType type = make_type(DType::f32, {1, 3, 2, 2});
  type.layout.channel_block = 4;
  Tensor actual(DType::f32, type.storage_dims());
  Tensor expected(DType::f32, type.storage_dims());
  ASSERT_EQ(actual.size(), 16);
  actual.mutable_view<float>()[3] = 7;  // channel 3 of 3
  EXPECT_EQ(output_error(type, actual, expected), 0);
  actual.mutable_view<float>()[2] = 7;
  EXPECT_GT(output_error(type, actual, expected), 1);
}

TEST(RandomInputs, AreTheSameEveryTimeAndValidIndices) {
  Graph body;
  ValueId table = body.add_input("table", make_type(DType::f32, {3, 50}));
  ValueId indices = body.add_input("indices", make_type(DType::i64, {100}));
  body.outputs = {body.add(Op::gather, {table, indices}, {{"axis", std::int64_t{0}}})};
  Kernel kernel = make_kernel(body, {true, false});
  auto inputs = random_inputs(kernel);
  std::set<std::int64_t> seen;
  for (std::int64_t index : inputs.at(1).to_int64s()) seen.insert(index);
  EXPECT_EQ(seen, (std::set<std::int64_t>{0, 1, 2}));
  for (float value : inputs.at(0).view<float>()) EXPECT_LT(std::abs(value), 1.0F);
  auto again = random_inputs(kernel);
  EXPECT_EQ(output_error(make_type(DType::f32, {3, 50}), inputs[0], again[0]), 0);
  EXPECT_NE(inputs[0].as_double(0), inputs[0].as_double(1));
}

TEST(OutputError, LetsNarrowTypesRoundToNeighbours) {
  const TensorType type = make_type(DType::bf16, {1});
  Tensor one(DType::bf16, {1});
  Tensor next(DType::bf16, {1});
  Tensor far(DType::bf16, {1});
  one.set_double(0, 1);
  next.set_double(0, 1 + 0x1p-7);
  far.set_double(0, 1 + 0x1p-5);
  EXPECT_LE(output_error(type, next, one), 1);
  EXPECT_GT(output_error(type, far, one), 1);
}

TEST(Plausibility, BoundsContractions) {
  double bound = least_microseconds(sample_matmul(1000), 1);  // 4 MFLOP
  EXPECT_GT(bound, 1);
  EXPECT_LT(bound, 10);
  EXPECT_EQ(least_microseconds(sample_pointwise(), 1), 0);
}

/// AMX makes 2.5 TFLOP/s of bf16 at 2.5 GHz, and twice that of bytes.
TEST(Plausibility, TilesOfAmxArePossible) {
  const auto least = [](DType element) {
    Graph body;
    const ValueId a = body.add_input("a", make_type(element, {1000, 1000}));
    const ValueId b = body.add_input("b", make_type(element, {1000, 1000}));
    body.outputs = {body.add(Op::matmul, {a, b})};
    return least_microseconds(make_kernel(body, {false, true}), 1);
  };
  const double flops = 2e9;
  EXPECT_LT(least(DType::bf16), flops / 5e6);
  EXPECT_LT(least(DType::i8), flops / 10e6);
  EXPECT_GT(least(DType::i8), flops / 100e6);
}

TEST(Verify, AttentionMayRoundItsProbabilities) {
  const auto attention = [](const char* type) {
    return parse_kernel(
        fmt::format("graph kernel(%in0: {0}[2,9,8], %in1: {0}[2,9,8], %in2: {0}[2,9,8]) {{\n"
                    "  %v0: {0}[2,9,8] = attention(%in0, %in1, %in2)\n  return %v0\n}}\nweights:\n",
                    type));
  };
  EXPECT_EQ(tolerance_of(attention("f32")).absolute, Tolerance().absolute);
  EXPECT_EQ(tolerance_of(attention("bf16")).absolute, 0x1p-8);
  EXPECT_EQ(tolerance_of(attention("f16")).absolute, 0x1p-11);
  EXPECT_EQ(tolerance_of(attention("f32"), true).absolute, 0x1p-9);  // TF32
}

}  // namespace
}  // namespace sylvite::verify_test
