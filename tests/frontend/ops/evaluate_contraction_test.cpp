#include <cmath>

#include "tests/frontend/ops/run_op.h"

namespace sylvite::evaluate_contraction_test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

void expect_near(const Tensor& got, const std::vector<double>& wanted) {
  EXPECT_THAT(values(got), Pointwise(DoubleNear(1e-6), wanted));
}

Attributes window(const Ints& strides, const Ints& pads, const Ints& dilations) {
  return {{"strides", strides}, {"pads", pads}, {"dilations", dilations}};
}

Attributes pooling(const Ints& kernel, const Ints& strides, const Ints& pads, const Ints& dilations) {
  Attributes attributes = window(strides, pads, dilations);
  attributes.set("kernel", kernel);
  return attributes;
}

TEST(EvaluateMatmul, MultipliesMatrices) {
  const Tensor product = run(Op::matmul, {counting({2, 3}), counting({3, 2})});
  EXPECT_EQ(product.to_int64s(), (Ints{10, 13, 28, 40}));
  EXPECT_EQ(run(Op::matmul, {counting({2, 3}, DType::i8), counting({3, 2}, DType::i8)}).to_int64s(),
            (Ints{10, 13, 28, 40}));
  EXPECT_EQ(run(Op::matmul, {counting({2, 3}, DType::f16), counting({3, 2}, DType::f16)}).to_int64s(),
            (Ints{10, 13, 28, 40}));
  EXPECT_EQ(run(Op::matmul, {ints({1, 1}, {-3}), ints({1, 1}, {5})}).to_int64s(), (Ints{-15}));
}

TEST(EvaluateMatmul, BroadcastsLeadingDims) {
  const Tensor a = counting({2, 1, 1, 2});
  const Tensor b = counting({3, 2, 1});
  const Tensor product = run(Op::matmul, {a, b});
  EXPECT_EQ(product.dims(), (Dims{2, 3, 1, 1}));
  EXPECT_EQ(product.to_int64s(), (Ints{1, 3, 5, 3, 13, 23}));
}

TEST(EvaluateMatmul, MatchesTheDefinitionOnOddSizes) {
  const std::int64_t rows = 7;
  const std::int64_t depth = 5;
  const std::int64_t columns = 131;
  Tensor a(DType::f32, {rows, depth});
  Tensor b(DType::f32, {depth, columns});
  for (std::int64_t i = 0; i < a.size(); ++i) a.set_double(i, std::sin(static_cast<double>(i)));
  for (std::int64_t i = 0; i < b.size(); ++i) b.set_double(i, std::cos(static_cast<double>(i)));
  const Tensor product = run(Op::matmul, {a, b});
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < depth; ++k)
        sum += a.as_double(i * depth + k) * b.as_double(k * columns + j);
      ASSERT_EQ(product.as_double(i * columns + j), static_cast<float>(sum)) << i << "," << j;
    }
  }
}

TEST(EvaluateMatmul, HandlesEmptyDims) {
  EXPECT_THAT(values(run(Op::matmul, {reals({2, 0}, {}), reals({0, 2}, {})})), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(run(Op::matmul, {reals({0, 2}, {}), counting({2, 3})}).dims(), (Dims{0, 3}));
  EXPECT_EQ(run(Op::matmul, {reals({0, 2, 2}, {}), counting({2, 3})}).dims(), (Dims{0, 2, 3}));
}

TEST(EvaluateConv, SlidesOverOneDimension) {
  const Tensor x = reals({1, 1, 5}, {1, 2, 3, 4, 5});
  const Tensor w = reals({1, 1, 2}, {1, 10});
  EXPECT_THAT(values(run(Op::conv, {x, w}, window({1}, {0, 0}, {1}))), ElementsAre(21, 32, 43, 54));
  EXPECT_THAT(values(run(Op::conv, {x, w}, window({2}, {1, 0}, {1}))), ElementsAre(10, 32, 54));
  EXPECT_THAT(values(run(Op::conv, {x, w, reals({1}, {100})}, window({1}, {0, 1}, {3}))),
              ElementsAre(141, 152, 103));
}

TEST(EvaluateConv, SumsOverChannelsAndGroups) {
  const Tensor x = counting({1, 4, 1, 2});
  const Tensor w = reals({2, 2, 1, 1}, {1, 10, 100, 1000});
  Attributes attributes = window({1, 1}, {0, 0, 0, 0}, {1, 1});
  attributes.set("groups", std::int64_t{2});
  EXPECT_THAT(values(run(Op::conv, {x, w}, attributes)), ElementsAre(20, 31, 6400, 7500));
}

/// A convolution is linear in its filter: its result times a gradient is the filter times the filter's gradient.
TEST(EvaluateFilterGradient, IsTheConvolutionsAdjoint) {
  for (const std::int64_t groups : {1, 2}) {
    Tensor x(DType::f64, {3, 4, 9, 7}), w(DType::f64, {6, 4 / groups, 3, 2});
    for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, std::sin(static_cast<double>(i)));
    for (std::int64_t i = 0; i < w.size(); ++i) w.set_double(i, std::cos(static_cast<double>(i)));
    Attributes attributes = window({2, 1}, {1, 0, 1, 2}, {1, 2});
    attributes.set("groups", groups);
    const Tensor y = run(Op::conv, {x, w}, attributes);
    Tensor gradient(DType::f64, y.dims());
    double wanted = 0;
    for (std::int64_t i = 0; i < y.size(); ++i) {
      gradient.set_double(i, std::sin(static_cast<double>(3 * i)));
      wanted += y.as_double(i) * gradient.as_double(i);
    }
    attributes.set("kernel", Ints{3, 2});
    for (const std::int64_t parts : {1, 2, 5}) {
      attributes.set("parts", parts);
      const Tensor sums = run(Op::filter_gradient, {gradient, x}, attributes);
      ASSERT_EQ(sums.dims(), (Dims{parts, 6, 6, 4 / groups}));
      double got = 0;
      for (std::int64_t i = 0; i < sums.size(); ++i) {
        const std::int64_t channel = i % (4 / groups), output = i / (4 / groups) % 6,
                           tap = i / (4 / groups) / 6 % 6;
        got += sums.as_double(i) * w.as_double((output * (4 / groups) + channel) * 6 + tap);
      }
      EXPECT_NEAR(got, wanted, 1e-9);
    }
  }
}

TEST(EvaluateMaxPoolGradient, AddsWhereTheFirstLargestIs) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = reals({1, 1, 2, 4}, {5, 5, 1, nan, 0, 5, 1, nan});
  const Tensor gradient = reals({1, 1, 1, 3}, {10, 100, 1000});
  const Tensor got = run(Op::max_pool_gradient, {gradient, x}, pooling({2, 2}, {2, 1}, {0, 0, 0, 0}, {1, 1}));
  EXPECT_THAT(values(got), ElementsAre(10, 100, 0, 1000, 0, 0, 0, 0));
}

/// What a small step changes.
void expect_slope_of_attention(const std::vector<Tensor>& mask) {
  const Dims q_dims = {2, 3, 4}, k_dims = {2, 5, 4};
  std::vector<Tensor> qkv = {Tensor(DType::f64, q_dims), Tensor(DType::f64, k_dims),
                             Tensor(DType::f64, k_dims)};
  for (std::size_t n = 0; n < 3; ++n)
    for (std::int64_t i = 0; i < qkv[n].size(); ++i)
      qkv[n].set_double(i, std::sin(static_cast<double>(i) * static_cast<double>(n + 1)));
  Tensor gradient(DType::f64, q_dims), products(DType::f32, {2, 3});
  for (std::int64_t i = 0; i < gradient.size(); ++i)
    gradient.set_double(i, std::cos(static_cast<double>(5 * i)));
  Attributes attributes{{"causal", std::int64_t{1}}, {"scale", 0.7}};
  const auto with_mask = [&](std::vector<std::optional<Tensor>> inputs) {
    inputs.insert(inputs.end(), mask.begin(), mask.end());
    return inputs;
  };
  const auto loss = [&] {
    const Tensor y = run(Op::attention, with_mask({qkv[0], qkv[1], qkv[2]}), attributes);
    double sum = 0;
    for (std::int64_t i = 0; i < y.size(); ++i) sum += y.as_double(i) * gradient.as_double(i);
    return sum;
  };
  const Tensor result = run(Op::attention, with_mask({qkv[0], qkv[1], qkv[2]}), attributes);
  for (std::int64_t row = 0; row < 6; ++row) {
    double sum = 0;
    for (std::int64_t d = 0; d < 4; ++d)
      sum += result.as_double(4 * row + d) * gradient.as_double(4 * row + d);
    products.set_double(row, sum);
  }
  const Tensor sums = run(Op::attention_sums, with_mask({qkv[0], qkv[1]}), attributes);
  constexpr double step = 1e-5;
  for (std::int64_t of = 0; of < 3; ++of) {
    Attributes which = attributes;
    which.set("of", of);
    const Tensor got =
        run(Op::attention_gradient, with_mask({qkv[0], qkv[1], qkv[2], gradient, sums, products}), which);
    Tensor& moved = qkv[static_cast<std::size_t>(of)];
    for (std::int64_t i = 0; i < moved.size(); i += 3) {
      const double at = moved.as_double(i);
      moved.set_double(i, at + step);
      const double above = loss();
      moved.set_double(i, at - step);
      const double below = loss();
      moved.set_double(i, at);
      EXPECT_NEAR(got.as_double(i), (above - below) / (2 * step), 1e-5) << "of " << of << " at " << i;
    }
  }
}

TEST(EvaluateAttentionGradient, IsTheSlopeOfAttention) {
  expect_slope_of_attention({});
  Tensor truth(DType::boolean, {2, 1, 5}), added(DType::f64, {3, 5});
  for (std::int64_t i = 0; i < truth.size(); ++i) truth.set_int64(i, i % 5 == 0 || i % 3 != 1);
  for (std::int64_t i = 0; i < added.size(); ++i) added.set_double(i, static_cast<double>(i % 4) / 3);
  expect_slope_of_attention({truth});
  expect_slope_of_attention({added});
}

TEST(EvaluateConv, MatchesTheDefinitionInThreeDimensions) {
  const Dims in = {2, 4, 5, 6, 7};
  const Dims filter = {6, 2, 2, 3, 2};
  const Ints strides = {2, 1, 3};
  const Ints pads = {1, 0, 2, 0, 2, 1};
  const Ints dilations = {1, 2, 2};
  Tensor x(DType::f64, in);
  Tensor w(DType::f64, filter);
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, std::sin(static_cast<double>(i)));
  for (std::int64_t i = 0; i < w.size(); ++i) w.set_double(i, std::cos(static_cast<double>(i)));
  Attributes attributes = window(strides, pads, dilations);
  attributes.set("groups", std::int64_t{2});
  const Tensor y = run(Op::conv, {x, w}, attributes);
  const Dims& out = y.dims();
  EXPECT_EQ(out, (Dims{2, 6, 3, 4, 3}));
  const auto at = [](const Tensor& t, std::int64_t n, std::int64_t c, std::int64_t d, std::int64_t h,
                     std::int64_t k) {
    const Dims& s = t.dims();
    const bool inside = d >= 0 && d < s[2] && h >= 0 && h < s[3] && k >= 0 && k < s[4];
    return inside ? t.as_double((((n * s[1] + c) * s[2] + d) * s[3] + h) * s[4] + k) : 0.0;
  };
  for (std::int64_t i = 0; i < y.size(); ++i) {
    const std::int64_t kx = i % out[4];
    const std::int64_t ky = i / out[4] % out[3];
    const std::int64_t kz = i / out[4] / out[3] % out[2];
    const std::int64_t o = i / out[4] / out[3] / out[2] % out[1];
    const std::int64_t n = i / out[4] / out[3] / out[2] / out[1];
    double sum = 0;
    for (std::int64_t c = 0; c < 2; ++c) {
      for (std::int64_t t = 0; t < 12; ++t) {
        const std::int64_t d = kz * strides[0] - pads[0] + t / 6 * dilations[0];
        const std::int64_t h = ky * strides[1] - pads[1] + t / 2 % 3 * dilations[1];
        const std::int64_t k = kx * strides[2] - pads[2] + t % 2 * dilations[2];
        sum += at(x, n, o / 3 * 2 + c, d, h, k) * w.as_double((o * 2 + c) * 12 + t);
      }
    }
    ASSERT_NEAR(y.as_double(i), sum, 1e-12) << i;
  }
}

TEST(EvaluateConv, HandlesAnEmptyBatch) {
  EXPECT_EQ(run(Op::conv, {reals({0, 1, 3}, {}), counting({2, 1, 2})}, window({1}, {0, 0}, {1})).dims(),
            (Dims{0, 2, 2}));
  EXPECT_THAT(values(run(Op::conv, {reals({1, 0, 2}, {}), reals({1, 0, 1}, {})}, window({1}, {0, 0}, {1}))),
              ElementsAre(0, 0));
}

TEST(EvaluatePool, TakesMaxima) {
  const Tensor x = reals({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_THAT(values(run(Op::max_pool, {x}, pooling({2, 2}, {1, 1}, {0, 0, 0, 0}, {1, 1}))),
              ElementsAre(5, 6, 8, 9));
  EXPECT_THAT(values(run(Op::max_pool, {x}, pooling({2, 2}, {1, 1}, {0, 0, 0, 0}, {2, 2}))), ElementsAre(9));
  const Tensor negative = reals({1, 1, 2}, {-1, -2});
  EXPECT_THAT(values(run(Op::max_pool, {negative}, pooling({2}, {1}, {1, 1}, {1}))), ElementsAre(-1, -1, -2));
  EXPECT_EQ(
      run(Op::max_pool, {ints({1, 1, 2}, {-5, -7}, DType::i8)}, pooling({2}, {2}, {1, 1}, {1})).to_int64s(),
      (Ints{-5, -7}));
  EXPECT_TRUE(std::isnan(
      run(Op::max_pool, {reals({1, 1, 2}, {not_a_number, 1})}, pooling({2}, {1}, {0, 0}, {1})).as_double(0)));
}

TEST(EvaluatePool, TakesMeans) {
  const Tensor x = reals({1, 1, 4}, {2, 4, 6, 8});
  expect_near(run(Op::avg_pool, {x}, pooling({2}, {1}, {1, 0}, {1})), {2, 3, 5, 7});
  Attributes counting_padding = pooling({2}, {1}, {1, 0}, {1});
  counting_padding.set("count_include_pad", std::int64_t{1});
  expect_near(run(Op::avg_pool, {x}, counting_padding), {1, 3, 5, 7});
  expect_near(run(Op::avg_pool, {x}, pooling({2}, {1}, {0, 0}, {2})), {4, 6});
  constexpr std::int64_t far = std::int64_t{1} << 30;  // of such windows only the taps inside are looked at
  expect_near(run(Op::avg_pool, {x}, pooling({far}, {1}, {far - 1, 1}, {1})), {2, 3, 4, 5, 5});
  expect_near(run(Op::avg_pool, {reals({1, 1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})},
                  pooling({2, 2, 2}, {1, 1, 1}, {0, 0, 0, 0, 0, 0}, {1, 1, 1})),
              {4.5});
}

TEST(EvaluateAttention, WeighsValuesByScores) {
  const Tensor q = reals({1, 1, 2}, {1, 0});
  const Tensor k = reals({1, 2, 2}, {std::log(3), 0, 0, 5});
  const Tensor v = reals({1, 2, 1}, {4, 8});
  expect_near(run(Op::attention, {q, k, v}, {{"scale", 1.0}}), {4 * 0.75 + 8 * 0.25});
  const double weight = 1 / (1 + std::exp(-std::log(3) / std::sqrt(2)));
  expect_near(run(Op::attention, {q, k, v}), {4 * weight + 8 * (1 - weight)});
  expect_near(run(Op::attention, {q, k, v, ints({1, 2}, {0, 1}, DType::boolean)}), {8});
  expect_near(run(Op::attention, {q, k, v, reals({2}, {0, std::log(3)})}, {{"scale", 1.0}}), {6});
  const double capped = 1 / (1 + std::exp(-0.5 * std::tanh(std::log(3) / 0.5)));
  expect_near(run(Op::attention, {q, k, v}, {{"scale", 1.0}, {"softcap", 0.5}}),
              {4 * capped + 8 * (1 - capped)});
}

TEST(EvaluateAttention, CausalRowsSeeThePast) {
  const Tensor q = reals({3, 1}, {0, 0, 0});
  const Tensor v = reals({3, 1}, {3, 5, 10});
  expect_near(run(Op::attention, {q, q, v}, {{"causal", std::int64_t{1}}}), {3, 4, 6});
}

TEST(EvaluateAttention, BroadcastsHeads) {
  const Tensor q = reals({2, 2, 1, 1}, {0, 0, 0, 0});
  const Tensor k = reals({1, 2, 1}, {0, 0});
  const Tensor v = reals({2, 1, 2, 1}, {1, 3, 10, 30});
  const Tensor result = run(Op::attention, {q, k, v});
  EXPECT_EQ(result.dims(), (Dims{2, 2, 1, 1}));
  expect_near(result, {2, 2, 20, 20});
}

}  // namespace
}  // namespace sylvite::evaluate_contraction_test
