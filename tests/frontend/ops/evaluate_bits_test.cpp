// The meaning of products by weights of a few bits, by hand.

#include <cmath>

#include "tests/frontend/ops/run_op.h"

namespace sylvite::evaluate_bits_test {
namespace {

Attributes of_bits(std::int64_t bits) {
  return {{"bits", bits}, {"block", std::int64_t{16}}};
}

Tensor row_of(std::int64_t count, double value) {
  return reals({1, count}, std::vector<double>(static_cast<std::size_t>(count), value));
}

/// Numbers 0 to 15, the first of a byte in its lowest bits.
Tensor all_fours() {
  Ints bytes;
  for (std::int64_t i = 0; i < 8; ++i) bytes.push_back(2 * i + 16 * (2 * i + 1));
  return ints({1, 1, 8}, bytes, DType::u8);
}

TEST(MatmulBits, NumbersLessTheirZeroTimesTheirScale) {
  EXPECT_EQ(values(run(Op::matmul_bits, {row_of(16, 1), all_fours(), reals({1, 1}, {0.5})}, of_bits(4))),
            std::vector<double>{(120 - 16 * 8) * 0.5});
  EXPECT_EQ(values(run(Op::matmul_bits,
                       {row_of(16, 1), all_fours(), reals({1, 1}, {0.5}), ints({1, 1}, {3}, DType::u8)},
                       of_bits(4))),
            std::vector<double>{(120 - 16 * 3) * 0.5});
  EXPECT_EQ(values(run(Op::matmul_bits,
                       {row_of(16, 2), all_fours(), reals({1, 1}, {1}), reals({1, 1}, {0.5})}, of_bits(4))),
            std::vector<double>{2 * (120 - 16 * 0.5)});
  // One of them alone: number 5, in the high bits of byte 2.
  std::vector<double> one(16, 0);
  one[5] = 1;
  EXPECT_EQ(values(run(Op::matmul_bits, {reals({1, 16}, one), all_fours(), reals({1, 1}, {1})}, of_bits(4))),
            std::vector<double>{5 - 8});
}

TEST(MatmulBits, OfTwoAndEightBits) {
  EXPECT_EQ(
      values(run(Op::matmul_bits,
                 {row_of(16, 1), ints({1, 1, 4}, {0xe4, 0xe4, 0xe4, 0xe4}, DType::u8), reals({1, 1}, {1})},
                 of_bits(2))),
      std::vector<double>{4 * (0 + 1 + 2 + 3) - 16 * 2});
  const Tensor bytes = ints({1, 1, 16}, Ints(16, 200), DType::u8);
  EXPECT_EQ(values(run(Op::matmul_bits, {row_of(16, 1), bytes, reals({1, 1}, {1})}, of_bits(8))),
            std::vector<double>{16 * (200 - 128)});
}

/// Two columns of two blocks, of whose last six numbers count.
TEST(MatmulBits, WhatIsBehindTheDepthDoesNotCount) {
  const Tensor b = ints({2, 2, 16}, Ints(64, 129), DType::u8);
  const Tensor scales = reals({2, 2}, {1, 10, 100, 1000});
  EXPECT_EQ(values(run(Op::matmul_bits, {row_of(22, 1), b, scales}, of_bits(8))),
            (std::vector<double>{16 + 6 * 10, 16 * 100 + 6 * 1000}));
}

TEST(QuantizedMatmulBits, StepsAreOfABlock) {
  // 127 in the first block makes steps of 1, so that 0.4 counts for nothing; in the second it is 127 of them.
  std::vector<double> row(32, 0);
  row[0] = 127;
  row[1] = 0.4;
  row[16] = 0.4;
  const Tensor b = ints({1, 2, 16}, Ints(32, 129), DType::u8);
  const Tensor y =
      run(Op::quantized_matmul_bits, {reals({1, 32}, row), b, reals({1, 2}, {1, 1})}, of_bits(8));
  EXPECT_NEAR(y.as_double(0), 127.4, 1e-5);
}

TEST(QuantizedMatmulBits, BlocksThatAreNotFiniteGiveNan) {
  const Tensor b = ints({1, 1, 16}, Ints(16, 128), DType::u8);
  for (const double odd : {infinity, -infinity, not_a_number}) {
    std::vector<double> row(16, 1);
    row[3] = odd;
    EXPECT_TRUE(
        std::isnan(run(Op::quantized_matmul_bits, {reals({1, 16}, row), b, reals({1, 1}, {1})}, of_bits(8))
                       .as_double(0)));
  }
}

TEST(MatmulBits, RefusesWhatDoesNotFit) {
  const auto refuses = [](const Dims& a, const Dims& b, const Dims& scales, const Attributes& attributes) {
    Graph graph;
    const ValueId x = graph.add_input("a", make_type(DType::f32, a));
    const ValueId w = graph.add_input("b", make_type(DType::u8, b));
    const ValueId s = graph.add_input("s", make_type(DType::f32, scales));
    EXPECT_THROW(graph.add(Op::matmul_bits, {x, w, s}, attributes), ModelError);
  };
  refuses({2, 32}, {4, 1, 8}, {4, 1}, of_bits(4));
  refuses({2, 32}, {4, 2, 16}, {4, 2}, of_bits(4));
  refuses({2, 32}, {4, 2, 8}, {4, 1}, of_bits(4));
  refuses({2, 32}, {4, 2, 8}, {4, 2}, of_bits(3));
  refuses({2, 32}, {4, 2, 8}, {4, 2}, {{"bits", std::int64_t{4}}, {"block", std::int64_t{24}}});
  refuses({32}, {4, 2, 8}, {4, 2}, of_bits(4));
}

}  // namespace
}  // namespace sylvite::evaluate_bits_test
