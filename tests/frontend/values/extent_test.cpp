#include "sylvite/extent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "frontend/values/extents_at.h"

namespace sylvite::extent_test {
namespace {

Extent e(std::string_view text) {
  return Extent::parse(text);
}
std::string canonical(std::string_view text) {
  return e(text).to_string();
}

TEST(Extent, KnownNumbersAreNumbers) {
  EXPECT_TRUE(Extent(3).is_known());
  EXPECT_EQ((Extent(3) * 4 - 2).known(), 10);
  EXPECT_FALSE(Extent::symbol("n").is_known());
  EXPECT_THROW((void)Extent::symbol("n").known(), UnsupportedError);
  EXPECT_THROW((void)Extent::symbol(""), InternalError);
  EXPECT_TRUE((e("n") - e("n")).is_known());
}

TEST(Extent, ExtentsHaveNumbersAtSizes) {
  EXPECT_EQ(extents_at({e("2*n+1"), e("m"), 3}, {{"n", 4}, {"m", 5}}), (Dims{9, 5, 3}));
  EXPECT_THROW((void)extents_at({e("n")}, {{"m", 5}}), InternalError);
}

TEST(Extent, HasOneFormForEqualPolynomials) {
  EXPECT_EQ(canonical("(a+b)*(a-b)"), "a*a-b*b");
  EXPECT_EQ(canonical("b*2+1+a-1"), "a+2*b");
  EXPECT_EQ(canonical("n*0+7"), "7");
  EXPECT_EQ(e("(s+1)*(s+1)"), e("s*s+2*s+1"));
  EXPECT_NE(e("s"), e("t"));
}

TEST(Extent, FloorsTakeOutWhatDivides) {
  EXPECT_EQ(canonical("floor((4*n+6)/4)"), "n+1");
  EXPECT_EQ(canonical("floor((4*n+2)/4)"), "n");
  EXPECT_EQ(canonical("floor((6*n+3)/4)"), "n+floor((n+1)/2)");
  EXPECT_EQ(canonical("floor((6*n+4)/8)"), "floor((3*n+2)/4)");
  EXPECT_EQ(canonical("floor((floor((n+1)/2)+1)/2)"), "floor((n+3)/4)");
  EXPECT_EQ(canonical("floor((n-1)/2)+1"), canonical("floor((n+1)/2)"));
  EXPECT_EQ(canonical("ceil(32*n/32)"), "n");
  EXPECT_EQ(canonical("mod(n+4,4)"), canonical("mod(n,4)"));
  EXPECT_THROW((void)floor_div(e("n"), 0), ModelError);
}

TEST(Extent, MinimaAndMaximaHaveOneForm) {
  EXPECT_EQ(e("max(a,b)"), e("max(b,a)"));
  EXPECT_EQ(e("min(a,b)"), e("min(b,a)"));
  EXPECT_EQ(e("min(a,b)+max(a,b)"), e("a+b"));
  EXPECT_EQ(canonical("max(n+1,n)"), "n+1");
  EXPECT_EQ(canonical("min(2*a,2*b)"), canonical("2*min(a,b)"));
  EXPECT_EQ(canonical("max(n,0)"), "n");
  EXPECT_EQ(canonical("min(n,0)"), "0");
}

TEST(Extent, TextReadsBack) {
  for (const char* text :
       {"a*a-b*b", "floor((n+3)/4)", "max(a-b,0)", "-2*n+7", "\"2*s0\"+\"a b\"", "\"min\"", "0"})
    EXPECT_EQ(canonical(text), text);
  for (const char* text :
       {"", "n+", "floor(n/0)", "floor(n,2)", "what(n)", "n n", "\"", "99999999999999999999", "3m("})
    EXPECT_THROW((void)e(text), ModelError) << text;
  EXPECT_THROW((void)e(std::string(1000, '(') + "1"), ModelError);
}

TEST(Extent, OverflowIsAnError) {
  EXPECT_THROW((void)(e("n") * INT64_MAX * 2), ModelError);
  EXPECT_THROW((void)e("n*n").at({{"n", INT64_MAX}}), ModelError);
  EXPECT_THROW((void)e("n").at({}), InternalError);
}

TEST(Extent, BoundsKnowFloorsAndMinima) {
  const SymbolTable symbols = {{"n", {1, 100, {}}}, {"w", {32, 1024, {}}}, {"free", {}}};
  EXPECT_EQ(bounds(e("2*n+1"), symbols), (Interval{3, 201}));
  EXPECT_EQ(bounds(e("mod(n,8)"), symbols), (Interval{0, 7}));
  EXPECT_EQ(bounds(e("ceil(n/8)*8-n"), symbols), (Interval{0, 7}));
  EXPECT_EQ(bounds(e("min(n,w)"), symbols), (Interval{1, 100}));
  EXPECT_EQ(bounds(e("max(n,w)"), symbols), (Interval{32, 1024}));
  EXPECT_EQ(bounds(e("free"), symbols), (Interval{1, INT64_MAX}));
  EXPECT_EQ(bounds(e("unheard"), symbols), (Interval{0, INT64_MAX}));
  EXPECT_EQ(bounds(e("3-free"), symbols), (Interval{INT64_MIN, 2}));
  EXPECT_EQ(bounds(e("n*w"), symbols), (Interval{32, 102400}));
}

TEST(Extent, RangesDecideFloorsAndMaxima) {
  const SymbolTable symbols = {{"n", {1, 100, {}}}, {"w", {128, 1024, {}}}, {"one", {1, 1, {}}}};
  EXPECT_EQ(simplify(e("max(n,w)"), symbols).to_string(), "w");
  EXPECT_EQ(simplify(e("min(n,w)"), symbols).to_string(), "n");
  EXPECT_EQ(simplify(e("floor(n/128)"), symbols).to_string(), "0");
  EXPECT_EQ(simplify(e("n*one+floor((n+one)/2)"), symbols).to_string(), "n+floor((n+1)/2)");
}

/// A random expression, by the functions and by plain arithmetic on one binding.
struct Sample {
  Extent extent;
  std::int64_t value = 0;
};

class Samples {
 public:
  explicit Samples(unsigned seed) : random_(seed) {
    for (const char* name : {"a", "b", "c"}) binding_[name] = pick(0, 9);
  }
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  Sample grow(int depth) {
    if (depth == 0 || pick(0, 5) == 0) return leaf();
    const Sample x = grow(depth - 1);
    const std::int64_t divisor = pick(1, 6);
    const auto floored = [&](std::int64_t v) { return v / divisor - (v % divisor < 0 ? 1 : 0); };
    switch (pick(0, 7)) {
      case 0:
        return {floor_div(x.extent, divisor), floored(x.value)};
      case 1:
        return {ceil_div(x.extent, divisor), -floored(-x.value)};
      case 2:
        return {mod(x.extent, divisor), x.value - divisor * floored(x.value)};
      default:
        break;
    }
    const Sample y = grow(depth - 1);
    switch (pick(0, 4)) {
      case 0:
        return {x.extent * y.extent, x.value * y.value};
      case 1:
        return {x.extent - y.extent, x.value - y.value};
      case 2:
        return {min(x.extent, y.extent), std::min(x.value, y.value)};
      case 3:
        return {max(x.extent, y.extent), std::max(x.value, y.value)};
      default:
        return {x.extent + y.extent, x.value + y.value};
    }
  }
  [[nodiscard]] const SymbolValues& binding() const { return binding_; }

 private:
  Sample leaf() {
    if (pick(0, 2) == 0) {
      const std::int64_t number = pick(-4, 9);
      return {number, number};
    }
    const std::string name(1, static_cast<char>('a' + pick(0, 2)));
    return {Extent::symbol(name), binding_.at(name)};
  }

  std::mt19937 random_;
  SymbolValues binding_;
};

TEST(Extent, AgreesWithPlainArithmetic) {
  const SymbolTable symbols = {{"a", {0, 9, {}}}, {"b", {0, 9, {}}}, {"c", {0, 9, {}}}};
  for (unsigned seed = 0; seed < 5000; ++seed) {
    Samples samples(seed);
    Sample sample;
    try {
      sample = samples.grow(4);
    } catch (const UnsupportedError&) {
      continue;  // more than a hundred terms
    }
    const std::string text = sample.extent.to_string();
    ASSERT_EQ(sample.extent.at(samples.binding()), sample.value) << seed << ' ' << text;
    ASSERT_EQ(Extent::parse(text), sample.extent) << seed << ' ' << text;
    const Interval range = bounds(sample.extent, symbols);
    ASSERT_LE(range.low, sample.value) << seed << ' ' << text;
    ASSERT_GE(range.high, sample.value) << seed << ' ' << text;
    ASSERT_EQ(simplify(sample.extent, symbols).at(samples.binding()), sample.value) << seed << ' ' << text;
    ASSERT_EQ(sample.extent.substitute({{"a", e("b+1")}}).at(samples.binding()),
              sample.extent.at({{"a", samples.binding().at("b") + 1},
                                {"b", samples.binding().at("b")},
                                {"c", samples.binding().at("c")}}))
        << seed << ' ' << text;
  }
}

}  // namespace
}  // namespace sylvite::extent_test
