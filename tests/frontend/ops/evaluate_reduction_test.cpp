#include <cmath>

#include "tests/frontend/ops/run_op.h"

namespace sylvite::evaluate_reduction_test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

Tensor reduce(Op op, const Tensor& x, const Ints& axes, bool keepdims = false) {
  return run(op, {x}, {{"axes", axes}, {"keepdims", std::int64_t{keepdims}}});
}

void expect_near(const Tensor& got, const std::vector<double>& wanted) {
  EXPECT_THAT(values(got), Pointwise(DoubleNear(1e-6), wanted));
}

TEST(EvaluateReduction, FoldsAnyAxes) {
  const Tensor x = counting({2, 3, 2});
  EXPECT_EQ(reduce(Op::reduce_sum, x, {0}).to_int64s(), (Ints{6, 8, 10, 12, 14, 16}));
  EXPECT_EQ(reduce(Op::reduce_sum, x, {1}).to_int64s(), (Ints{6, 9, 24, 27}));
  EXPECT_EQ(reduce(Op::reduce_sum, x, {2}).to_int64s(), (Ints{1, 5, 9, 13, 17, 21}));
  EXPECT_EQ(reduce(Op::reduce_sum, x, {0, 2}).to_int64s(), (Ints{14, 22, 30}));
  EXPECT_EQ(reduce(Op::reduce_sum, x, {0, 1, 2}).to_int64s(), (Ints{66}));
  EXPECT_EQ(reduce(Op::reduce_sum, x, {}).to_int64s(), x.to_int64s());
  EXPECT_EQ(reduce(Op::reduce_max, x, {1}).to_int64s(), (Ints{4, 5, 10, 11}));
  EXPECT_EQ(reduce(Op::reduce_min, x, {1}).to_int64s(), (Ints{0, 1, 6, 7}));
  EXPECT_EQ(reduce(Op::reduce_prod, reals({2, 2}, {1, 2, 3, 4}), {0}).to_int64s(), (Ints{3, 8}));
  EXPECT_EQ(reduce(Op::reduce_sum, x, {0, 2}, true).dims(), (Dims{1, 3, 1}));
  EXPECT_EQ(reduce(Op::reduce_sum, counting({}), {}).dims(), Dims{});
}

TEST(EvaluateReduction, FoldsIntegersExactly) {
  EXPECT_EQ(reduce(Op::reduce_sum, ints({2}, {(std::int64_t{1} << 60) + 1, 1}), {0}).to_int64s(),
            (Ints{(std::int64_t{1} << 60) + 2}));
  EXPECT_EQ(reduce(Op::reduce_sum, ints({2}, {127, 1}, DType::i8), {0}).to_int64s(), (Ints{-128}));
  EXPECT_EQ(reduce(Op::reduce_max, ints({2}, {-5, -3}, DType::i8), {0}).to_int64s(), (Ints{-3}));
  EXPECT_EQ(reduce(Op::reduce_max, ints({2}, {0, 1}, DType::boolean), {0}).to_int64s(), (Ints{1}));
}

TEST(EvaluateReduction, FoldsNothing) {
  EXPECT_THAT(values(reduce(Op::reduce_sum, reals({0, 2}, {}), {0})), ElementsAre(0, 0));
  EXPECT_THAT(values(reduce(Op::reduce_prod, reals({2, 0}, {}), {1})), ElementsAre(1, 1));
  EXPECT_THAT(values(reduce(Op::reduce_max, reals({0}, {}), {0})), ElementsAre(-infinity));
  EXPECT_THAT(values(reduce(Op::reduce_min, reals({0}, {}), {0})), ElementsAre(infinity));
  EXPECT_EQ(reduce(Op::reduce_max, ints({0}, {}, DType::i8), {0}).to_int64s(), (Ints{-128}));
  EXPECT_EQ(reduce(Op::reduce_min, ints({0}, {}, DType::u16), {0}).to_int64s(), (Ints{65535}));
  EXPECT_EQ(reduce(Op::reduce_sum, reals({0, 2}, {}), {1}).dims(), (Dims{0}));
}

TEST(EvaluateReduction, NanWins) {
  for (Op op : {Op::reduce_max, Op::reduce_min, Op::reduce_sum}) {
    EXPECT_TRUE(std::isnan(reduce(op, reals({3}, {1, not_a_number, 2}), {0}).as_double(0)));
    EXPECT_TRUE(std::isnan(reduce(op, reals({3, 1}, {1, not_a_number, 2}), {0}).as_double(0)));
  }
}

TEST(EvaluateReduction, FindsPositions) {
  const Tensor x = reals({2, 3}, {1, 5, 5, 0, 0, 2});
  const auto find = [&](Op op, std::int64_t axis, std::int64_t last) {
    return run(op, {x}, {{"axis", axis}, {"keepdims", std::int64_t{0}}, {"select_last", last}}).to_int64s();
  };
  EXPECT_EQ(find(Op::arg_max, 1, 0), (Ints{1, 2}));
  EXPECT_EQ(find(Op::arg_max, 1, 1), (Ints{2, 2}));
  EXPECT_EQ(find(Op::arg_min, 1, 0), (Ints{0, 0}));
  EXPECT_EQ(find(Op::arg_min, 1, 1), (Ints{0, 1}));
  EXPECT_EQ(find(Op::arg_max, 0, 0), (Ints{0, 0, 0}));
  EXPECT_EQ(run(Op::arg_max, {x}, {{"axis", std::int64_t{1}}}).dims(), (Dims{2, 1}));
}

TEST(EvaluateReduction, Scans) {
  const auto scan = [](Op op, const Tensor& x, std::int64_t axis, std::int64_t exclusive,
                       std::int64_t reverse) {
    return run(op, {x}, {{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}}).to_int64s();
  };
  const Tensor x = reals({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(scan(Op::cumsum, x, 1, 0, 0), (Ints{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(scan(Op::cumsum, x, 0, 0, 0), (Ints{1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(scan(Op::cumsum, x, 1, 1, 0), (Ints{0, 1, 3, 0, 4, 9}));
  EXPECT_EQ(scan(Op::cumsum, x, 1, 0, 1), (Ints{6, 5, 3, 15, 11, 6}));
  EXPECT_EQ(scan(Op::cumsum, x, 1, 1, 1), (Ints{5, 3, 0, 11, 6, 0}));
  EXPECT_EQ(scan(Op::cumprod, x, 1, 0, 0), (Ints{1, 2, 6, 4, 20, 120}));
  EXPECT_EQ(scan(Op::cumprod, x, 1, 1, 0), (Ints{1, 1, 2, 1, 4, 20}));
  EXPECT_EQ(scan(Op::cumsum, ints({2}, {127, 1}, DType::i8), 0, 0, 0), (Ints{127, -128}));
  EXPECT_EQ(scan(Op::cumsum, reals({0}, {}), 0, 0, 0), Ints{});
}

TEST(EvaluateReduction, SortsTheTop) {
  const auto top = [](const Tensor& x, std::int64_t axis, std::int64_t k, std::int64_t largest) {
    return run_all(Op::top_k, {x}, {{"axis", axis}, {"k", Dims{k}}, {"largest", largest}});
  };
  const auto largest = top(reals({2, 4}, {1, 3, 3, 2, 9, 8, 7, 6}), 1, 3, 1);
  EXPECT_EQ(largest[0].to_int64s(), (Ints{3, 3, 2, 9, 8, 7}));
  EXPECT_EQ(largest[1].to_int64s(), (Ints{1, 2, 3, 0, 1, 2}));
  const auto smallest = top(ints({3, 2}, {5, 1, 4, 1, 6, 0}, DType::i32), 0, 2, 0);
  EXPECT_EQ(smallest[0].to_int64s(), (Ints{4, 0, 5, 1}));
  EXPECT_EQ(smallest[1].to_int64s(), (Ints{1, 2, 0, 0}));
  EXPECT_EQ(top(reals({3}, {1, not_a_number, 2}), 0, 2, 1)[1].to_int64s(), (Ints{1, 2}));
  EXPECT_EQ(top(reals({3}, {1, 2, 3}), 0, 0, 1)[0].dims(), (Dims{0}));
}

TEST(EvaluateNormalization, Softmax) {
  const double e = M_E;
  expect_near(run(Op::softmax, {reals({2}, {0, 1})}, {{"axis", std::int64_t{0}}}),
              {1 / (1 + e), e / (1 + e)});
  expect_near(run(Op::softmax, {reals({2, 2}, {0, 1000, 0, -1000})}, {{"axis", std::int64_t{0}}}),
              {0.5, 1, 0.5, 0});
  expect_near(run(Op::log_softmax, {reals({2}, {0, 1000})}, {{"axis", std::int64_t{0}}}), {-1000, 0});
  EXPECT_EQ(run(Op::softmax, {reals({2, 0}, {})}, {{"axis", std::int64_t{1}}}).dims(), (Dims{2, 0}));
}

TEST(EvaluateNormalization, LayerAndRmsNorm) {
  const Tensor x = reals({2, 2}, {1, 3, -2, 2});
  const Attributes attributes = {{"axis", std::int64_t{1}}, {"epsilon", 0.0}};
  expect_near(run(Op::layer_norm, {x}, attributes), {-1, 1, -1, 1});
  expect_near(run(Op::layer_norm, {x, reals({2}, {2, 3}), reals({2}, {10, 20})}, attributes), {8, 23, 8, 23});
  expect_near(run(Op::layer_norm, {x, std::nullopt, reals({1}, {5})}, attributes), {4, 6, 4, 6});
  expect_near(run(Op::layer_norm, {x}, {{"axis", std::int64_t{0}}, {"epsilon", 0.0}}),
              {0, 2 / std::sqrt(3.5), -3 / std::sqrt(3.5), 1 / std::sqrt(3.5)});
  expect_near(run(Op::rms_norm, {x, reals({2}, {1, 2})}, attributes),
              {1 / std::sqrt(5), 6 / std::sqrt(5), -1, 2});
  expect_near(run(Op::layer_norm, {reals({1, 4, 2}, {1, 3, 1, 3, -2, 2, 2, -2})},
                  {{"axis", std::int64_t{1}}, {"epsilon", 0.0}, {"groups", std::int64_t{2}}}),
              {-1, 1, -1, 1, -1, 1, 1, -1});
  EXPECT_EQ(run(Op::layer_norm, {reals({0, 2}, {})}, attributes).dims(), (Dims{0, 2}));
  EXPECT_EQ(run(Op::layer_norm, {reals({2, 0}, {})}, attributes).dims(), (Dims{2, 0}));
}

TEST(EvaluateNormalization, BatchNorm) {
  const Tensor x = reals({1, 2, 2}, {1, 2, 3, 4});
  const Tensor result =
      run(Op::batch_norm, {x, reals({2}, {1, 2}), reals({2}, {0, 1}), reals({2}, {1, 3}), reals({2}, {4, 1})},
          {{"epsilon", 0.0}});
  expect_near(result, {0, 0.5, 1, 3});
}

}  // namespace
}  // namespace sylvite::evaluate_reduction_test
