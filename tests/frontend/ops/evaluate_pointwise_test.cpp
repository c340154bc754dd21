#include <cmath>

#include "frontend/ops/philox.h"
#include "tests/frontend/ops/run_op.h"

namespace sylvite::evaluate_pointwise_test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::NanSensitiveDoubleEq;
using testing::Pointwise;

std::vector<double> apply(Op op, const std::vector<double>& x, Attributes attributes = {},
                          DType dtype = DType::f64) {
  return values(run(op, {reals({static_cast<std::int64_t>(x.size())}, x, dtype)}, std::move(attributes)));
}

std::vector<double> apply(Op op, const std::vector<double>& a, const std::vector<double>& b,
                          DType dtype = DType::f64) {
  return values(run(op, {reals({static_cast<std::int64_t>(a.size())}, a, dtype),
                         reals({static_cast<std::int64_t>(b.size())}, b, dtype)}));
}

Ints apply_ints(Op op, DType dtype, const Ints& a, const Ints& b, Attributes attributes = {}) {
  return run(op,
             {ints({static_cast<std::int64_t>(a.size())}, a, dtype),
              ints({static_cast<std::int64_t>(b.size())}, b, dtype)},
             std::move(attributes))
      .to_int64s();
}

void expect_near(const std::vector<double>& got, const std::vector<double>& wanted) {
  EXPECT_THAT(got, Pointwise(DoubleNear(1e-12), wanted));
}

void expect_same(const std::vector<double>& got, const std::vector<double>& wanted) {
  EXPECT_THAT(got, Pointwise(NanSensitiveDoubleEq(), wanted));
}

TEST(EvaluatePointwise, RoundsAndSigns) {
  expect_same(apply(Op::round, {0.5, 1.5, 2.5, -0.5, -1.5}), {0, 2, 2, -0.0, -2});
  expect_same(apply(Op::floor, {1.5, -1.5}), {1, -2});
  expect_same(apply(Op::ceil, {1.5, -1.5}), {2, -1});
  expect_same(apply(Op::sign, {3, -2, 0, not_a_number}), {1, -1, 0, not_a_number});
  expect_same(apply(Op::neg, {1, -2}), {-1, 2});
  expect_same(apply(Op::abs, {1, -2, -infinity}), {1, 2, infinity});
}

TEST(EvaluatePointwise, RoundsInUnitsOfAScale) {
  const Tensor x = reals({8}, {1.25, 0.75, -0.25, 100, -100, infinity, -infinity, not_a_number});
  const auto rounded = [&](const char* to, const std::optional<Tensor>& zero) {
    std::vector<std::optional<Tensor>> inputs = {x, reals({}, {0.5})};
    if (zero) inputs.push_back(zero);
    return run_all(Op::round, inputs, {{"to", std::string(to)}}).at(0).to_int64s();
  };
  EXPECT_THAT(rounded("u8", ints({}, {10}, DType::u8)), ElementsAre(12, 12, 10, 210, 0, 255, 0, 0));
  EXPECT_THAT(rounded("i8", std::nullopt), ElementsAre(2, 2, 0, 127, -128, 127, -128, -128));
  EXPECT_THAT(rounded("i16", ints({}, {-3}, DType::i16)),
              ElementsAre(-1, -1, -3, 197, -203, 32767, -32768, -32768));
}

TEST(EvaluatePointwise, ComputesRootsExponentialsAndTrigonometry) {
  expect_same(apply(Op::sqrt, {4, 0, -1}), {2, 0, not_a_number});
  expect_same(apply(Op::rsqrt, {4, 0}), {0.5, infinity});
  expect_same(apply(Op::reciprocal, {4, 0}), {0.25, infinity});
  expect_near(apply(Op::exp, {0, 1}), {1, M_E});
  expect_same(apply(Op::exp, {infinity, -infinity, not_a_number}), {infinity, 0, not_a_number});
  expect_same(apply(Op::log, {1, 0, -1}), {0, -infinity, not_a_number});
  expect_near(apply(Op::sin, {M_PI_2}), {1});
  expect_near(apply(Op::cos, {M_PI}), {-1});
  expect_near(apply(Op::tan, {M_PI_4}), {1});
  expect_near(apply(Op::asin, {1}), {M_PI_2});
  expect_near(apply(Op::acos, {-1}), {M_PI});
  expect_near(apply(Op::atan, {1}), {M_PI_4});
  expect_near(apply(Op::sinh, {1}), {1.1752011936438014});
  expect_near(apply(Op::cosh, {1}), {1.5430806348152437});
  expect_near(apply(Op::tanh, {1}), {0.7615941559557649});
  expect_near(apply(Op::asinh, {1}), {0.881373587019543});
  expect_near(apply(Op::acosh, {2}), {1.3169578969248166});
  expect_near(apply(Op::atanh, {0.5}), {0.5493061443340549});
  expect_near(apply(Op::erf, {1, infinity}), {0.8427007929497149, 1});
}

TEST(EvaluatePointwise, ComputesActivations) {
  expect_near(apply(Op::sigmoid, {0, 1000, -1000}), {0.5, 1, 0});
  expect_same(apply(Op::relu, {-1, 2, not_a_number}), {0, 2, not_a_number});
  expect_near(apply(Op::gelu, {0, 1, -1}), {0, 0.8413447460685429, -0.15865525393145707});
  expect_near(apply(Op::gelu, {1}, {{"approximate", "tanh"}}), {0.8411919906082768});
  expect_near(apply(Op::silu, {1}), {0.7310585786300049});
  expect_same(apply(Op::hard_sigmoid, {0, 10, -10, not_a_number}), {0.5, 1, 0, not_a_number});
  expect_near(apply(Op::hard_sigmoid, {1}, {{"alpha", 0.25}, {"beta", 0.0}}), {0.25});
  expect_near(apply(Op::hard_swish, {-4, 0, 3, 6}), {0, 0, 3, 6});
  expect_near(apply(Op::softplus, {0, 1000, -1000}), {std::log(2), 1000, 0});
}

TEST(EvaluatePointwise, ClassifiesAndNegates) {
  expect_same(apply(Op::is_nan, {1, not_a_number, infinity}), {0, 1, 0});
  expect_same(apply(Op::is_inf, {infinity, -infinity, not_a_number}), {1, 1, 0});
  expect_same(apply(Op::is_inf, {infinity, -infinity}, {{"detect_negative", std::int64_t{0}}}), {1, 0});
  expect_same(apply(Op::is_inf, {infinity, -infinity}, {{"detect_positive", std::int64_t{0}}}), {0, 1});
  EXPECT_EQ(run(Op::logical_not, {ints({2}, {0, 1}, DType::boolean)}).to_int64s(), (Ints{1, 0}));
  EXPECT_EQ(run(Op::bitwise_not, {ints({2}, {0, 5}, DType::u8)}).to_int64s(), (Ints{255, 250}));
  EXPECT_EQ(run(Op::bitwise_not, {ints({1}, {5}, DType::i8)}).to_int64s(), (Ints{-6}));
}

TEST(EvaluatePointwise, IntegersWrapAround) {
  EXPECT_EQ(run(Op::neg, {ints({2}, {-128, 1}, DType::i8)}).to_int64s(), (Ints{-128, -1}));
  EXPECT_EQ(run(Op::abs, {ints({2}, {-128, -5}, DType::i8)}).to_int64s(), (Ints{-128, 5}));
  EXPECT_EQ(run(Op::sign, {ints({3}, {-7, 0, 7}, DType::i32)}).to_int64s(), (Ints{-1, 0, 1}));
  EXPECT_EQ(run(Op::relu, {ints({2}, {-7, 7}, DType::i32)}).to_int64s(), (Ints{0, 7}));
  EXPECT_EQ(apply_ints(Op::add, DType::i8, {127}, {1}), (Ints{-128}));
  EXPECT_EQ(apply_ints(Op::sub, DType::u8, {0}, {1}), (Ints{255}));
  EXPECT_EQ(apply_ints(Op::mul, DType::i64, {std::numeric_limits<std::int64_t>::max()}, {2}), (Ints{-2}));
}

TEST(EvaluatePointwise, DividesAndTakesRemainders) {
  EXPECT_EQ(apply_ints(Op::div, DType::i32, {7, -7, 7, 5}, {2, 2, -2, 0}), (Ints{3, -3, -3, 0}));
  EXPECT_EQ(apply_ints(Op::div, DType::i64, {std::numeric_limits<std::int64_t>::min()}, {-1}),
            (Ints{std::numeric_limits<std::int64_t>::min()}));
  EXPECT_EQ(apply_ints(Op::mod, DType::i32, {7, -7, 7, -7, 5}, {3, 3, -3, -3, 0}), (Ints{1, 2, -2, -1, 0}));
  EXPECT_EQ(apply_ints(Op::mod, DType::i32, {7, -7, 7, -7}, {3, 3, -3, -3}, {{"fmod", std::int64_t{1}}}),
            (Ints{1, -1, 1, -1}));
  expect_same(apply(Op::mod, {5.5, -5.5, 4, -1}, {2, 2, -2, infinity}), {1.5, 0.5, -0.0, infinity});
  expect_same(
      values(run(Op::mod, {reals({2}, {-5.5, 5.5}), reals({2}, {2, -2})}, {{"fmod", std::int64_t{1}}})),
      {-1.5, 1.5});
  expect_same(apply(Op::div, {1, -1, 0}, {0, 0, 0}), {infinity, -infinity, not_a_number});
}

TEST(EvaluatePointwise, RaisesToPowers) {
  EXPECT_EQ(apply_ints(Op::pow, DType::i32, {2, -3, 0, 2, 1, -1, -1}, {10, 3, 0, -1, -5, -3, -4}),
            (Ints{1024, -27, 1, 0, 1, -1, 1}));
  EXPECT_EQ(apply_ints(Op::pow, DType::u8, {2}, {9}), (Ints{0}));
  expect_same(apply(Op::pow, {2, 4, -8}, {-1, 0.5, 0.5}), {0.5, 2, not_a_number});
}

TEST(EvaluatePointwise, MinimumAndMaximumPropagateNan) {
  expect_same(apply(Op::minimum, {1, not_a_number, 1}, {2, 1, not_a_number}),
              {1, not_a_number, not_a_number});
  expect_same(apply(Op::maximum, {1, not_a_number, 1}, {2, 1, not_a_number}),
              {2, not_a_number, not_a_number});
  EXPECT_EQ(apply_ints(Op::maximum, DType::u64, {-1}, {1}), (Ints{-1}));  // the largest u64
  EXPECT_EQ(apply_ints(Op::minimum, DType::i64, {-1}, {1}), (Ints{-1}));
}

// Known answers that come with the paper.
TEST(EvaluatePointwise, PhiloxIsPhilox) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(EvaluatePointwise, RandomBitsAreWordsOfPhilox) {
  const std::int64_t far = (std::int64_t{7} << 32) + 5;
  const std::int64_t seed = -3;
  const Tensor bits =
      run(Op::random_bits, {ints({3}, {0, far, -1}, DType::i64), ints({}, {seed}, DType::i64)},
          {{"stream", std::int64_t{9}}});
  EXPECT_EQ(bits.dtype(), DType::u32);
  EXPECT_EQ(bits.as_int64(0), philox({0, 0, 9, 0}, philox_words(seed))[0]);
  EXPECT_EQ(bits.as_int64(1), philox({5, 7, 9, 0}, philox_words(seed))[0]);
  EXPECT_EQ(bits.as_int64(2), philox({0xffffffff, 0xffffffff, 9, 0}, philox_words(seed))[0]);
}

TEST(EvaluatePointwise, Shifts) {
  EXPECT_EQ(apply_ints(Op::shift_left, DType::u8, {1, 1, 1}, {3, 8, 200}), (Ints{8, 0, 0}));
  EXPECT_EQ(apply_ints(Op::shift_left, DType::i32, {-1, 1}, {1, -1}), (Ints{-2, 0}));
  EXPECT_EQ(apply_ints(Op::shift_right, DType::u8, {255, 255}, {4, 8}), (Ints{15, 0}));
  EXPECT_EQ(apply_ints(Op::shift_right, DType::i8, {-8, -8, 8}, {1, 100, 100}), (Ints{-4, -1, 0}));
}

TEST(EvaluatePointwise, ComparesAndCombinesBooleans) {
  const Ints a = {1, 2, 3};
  const Ints b = {2, 2, 2};
  EXPECT_EQ(apply_ints(Op::equal, DType::i32, a, b), (Ints{0, 1, 0}));
  EXPECT_EQ(apply_ints(Op::less, DType::i32, a, b), (Ints{1, 0, 0}));
  EXPECT_EQ(apply_ints(Op::less_equal, DType::i32, a, b), (Ints{1, 1, 0}));
  EXPECT_EQ(apply_ints(Op::greater, DType::i32, a, b), (Ints{0, 0, 1}));
  EXPECT_EQ(apply_ints(Op::greater_equal, DType::i32, a, b), (Ints{0, 1, 1}));
  expect_same(apply(Op::equal, {not_a_number, 0.0}, {not_a_number, -0.0}), {0, 1});
  EXPECT_EQ(apply_ints(Op::greater, DType::u64, {-1}, {1}), (Ints{1}));
  const Ints p = {0, 0, 1, 1};
  const Ints q = {0, 1, 0, 1};
  EXPECT_EQ(apply_ints(Op::logical_and, DType::boolean, p, q), (Ints{0, 0, 0, 1}));
  EXPECT_EQ(apply_ints(Op::logical_or, DType::boolean, p, q), (Ints{0, 1, 1, 1}));
  EXPECT_EQ(apply_ints(Op::logical_xor, DType::boolean, p, q), (Ints{0, 1, 1, 0}));
  EXPECT_EQ(apply_ints(Op::bitwise_and, DType::i8, {6, -1}, {3, 5}), (Ints{2, 5}));
  EXPECT_EQ(apply_ints(Op::bitwise_or, DType::u16, {6}, {3}), (Ints{7}));
  EXPECT_EQ(apply_ints(Op::bitwise_xor, DType::i64, {6}, {3}), (Ints{5}));
}

TEST(EvaluatePointwise, Broadcasts) {
  const Tensor sum = run(Op::add, {reals({2, 1}, {10, 20}), reals({3}, {1, 2, 3})});
  EXPECT_EQ(sum.dims(), (Dims{2, 3}));
  EXPECT_THAT(values(sum), ElementsAre(11, 12, 13, 21, 22, 23));
  const Tensor chosen =
      run(Op::where, {ints({2, 1}, {1, 0}, DType::boolean), reals({}, {7}), reals({1, 2}, {1, 2})});
  EXPECT_THAT(values(chosen), ElementsAre(7, 7, 1, 2));
}

TEST(EvaluatePointwise, RoundsOncePerOperation) {
  // 2048 + 1 is a tie in f16 and rounds to even. 1 + 2^-8 + 2^-40 lies above a tie of bf16, but f32 rounds it
  // to the tie.
  EXPECT_THAT(apply(Op::add, {2048, 2050}, {1, 1}, DType::f16), ElementsAre(2048, 2052));
  EXPECT_THAT(apply(Op::add, {256, 258}, {1, 1}, DType::bf16), ElementsAre(256, 260));
  const double above_tie = 1 + std::ldexp(1, -8) + std::ldexp(1, -40);
  EXPECT_THAT(values(run(Op::cast, {reals({1}, {above_tie}, DType::f64)}, {{"to", "bf16"}})),
              ElementsAre(1.0078125));
}

TEST(EvaluatePointwise, CastsBetweenAllTypes) {
  const auto cast = [](const Tensor& tensor, const char* to) {
    return run(Op::cast, {tensor}, {{"to", to}});
  };
  const Tensor odd = reals({6}, {1.9, -1.9, 300, -300, infinity, not_a_number});
  EXPECT_EQ(cast(odd, "i8").to_int64s(), (Ints{1, -1, 127, -128, 127, 0}));
  EXPECT_EQ(cast(odd, "u8").to_int64s(), (Ints{1, 0, 255, 0, 255, 0}));
  EXPECT_EQ(cast(reals({2}, {1e30, -1e30}), "i64").to_int64s(),
            (Ints{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}));
  EXPECT_EQ(cast(reals({1}, {1e30}), "u64").view<std::uint64_t>()[0],
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(cast(reals({4}, {0, -0.0, 0.1, not_a_number}), "bool").to_int64s(), (Ints{0, 0, 1, 1}));
  EXPECT_EQ(cast(ints({3}, {256, -1, 127}, DType::i32), "i8").to_int64s(), (Ints{0, -1, 127}));
  EXPECT_EQ(cast(ints({1}, {-1}, DType::i8), "u16").to_int64s(), (Ints{65535}));
  EXPECT_EQ(cast(ints({2}, {0, 2}, DType::i8), "bool").to_int64s(), (Ints{0, 1}));
  EXPECT_THAT(values(cast(ints({2}, {0, 1}, DType::boolean), "f16")), ElementsAre(0, 1));
  EXPECT_THAT(values(cast(reals({2}, {65504, 65520}), "f16")), ElementsAre(65504, infinity));
  // (2^24 + 1) * 2^30 + 1 lies just above a tie of f32; through double it would become the tie.
  const std::int64_t above_tie = ((std::int64_t{1} << 24) + 1) * (std::int64_t{1} << 30) + 1;
  EXPECT_EQ(cast(ints({1}, {above_tie}), "f32").as_double(0), 18014400656965632.0);
  const char* names[] = {"f32", "f16", "bf16", "f64", "i8",  "i16", "i32",
                         "i64", "u8",  "u16",  "u32", "u64", "bool"};
  for (const char* from : names) {
    for (const char* to : names) {
      const Tensor one = cast(cast(ints({1}, {1}), from), to);
      EXPECT_EQ(one.as_double(0), 1) << from << " to " << to;
      EXPECT_EQ(dtype_name(one.dtype()), to);
    }
  }
}

TEST(EvaluatePointwise, EmptyInputsGiveEmptyOutputs) {
  EXPECT_EQ(run(Op::exp, {reals({0, 3}, {})}).dims(), (Dims{0, 3}));
  EXPECT_EQ(run(Op::add, {reals({0, 1}, {}), reals({3}, {1, 2, 3})}).dims(), (Dims{0, 3}));
  EXPECT_EQ(run(Op::less, {reals({0}, {}), reals({1}, {1})}).dims(), (Dims{0}));
  EXPECT_EQ(run(Op::where, {ints({0}, {}, DType::boolean), reals({}, {1}), reals({1}, {1})}).dims(),
            (Dims{0}));
}

}  // namespace
}  // namespace sylvite::evaluate_pointwise_test
