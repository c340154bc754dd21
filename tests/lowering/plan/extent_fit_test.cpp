#include "lowering/plan/extent_fit.h"

#include <gtest/gtest.h>

#include <functional>

namespace sylvite::extent_fit_test {
namespace {

const std::vector<FitSymbol> two = {{"batch", 1}, {"length", 1}};

/// What is found for `number` at these points, as text; "none" where nothing is.
std::string found(const std::vector<FitSymbol>& symbols, const std::vector<Dims>& points,
                  const std::function<std::int64_t(const Dims&)>& number) {
  ExtentFit fit(symbols, points);
  std::vector<std::int64_t> values;
  values.reserve(points.size());
  for (const Dims& point : points) values.push_back(number(point));
  const std::optional<Extent> extent = fit.of(values);
  return extent ? extent->to_string() : "none";
}

TEST(ExtentFit, FindsProductsOfSizes) {
  const std::vector<Dims> points = {{2, 16}, {15, 512}, {3, 40}, {8, 512}, {5, 77}, {4, 100}};
  EXPECT_EQ(found(two, points, [](const Dims& at) { return at[0] * at[1] * 768; }), "768*batch*length");
  EXPECT_EQ(found(two, points, [](const Dims& at) { return at[0] + 2 * at[1] + 3; }), "batch+2*length+3");
  EXPECT_EQ(found(two, points, [](const Dims&) { return 7; }), "7");
}

TEST(ExtentFit, SquaresNeedMorePoints) {
  const auto square = [](const Dims& at) { return at[0] * 12 * at[1] * at[1] + 5 * at[1] + 3; };
  std::vector<Dims> points = {{2, 16}, {15, 512}, {3, 40}, {8, 512}, {5, 77}, {4, 100}};
  EXPECT_EQ(found(two, points, square), "none");
  for (const Dims& more : {Dims{2, 512}, {15, 16}, {7, 33}, {9, 240}, {11, 61}}) points.push_back(more);
  EXPECT_EQ(found(two, points, square), "12*batch*length*length+5*length+3");
}

/// Ten points tell all products of three sizes.
TEST(ExtentFit, SixPointsTellSumsOfTwo) {
  const std::vector<FitSymbol> image = {{"batch"}, {"lines"}, {"columns"}};
  const std::vector<Dims> points = {{2, 48, 80},   {1, 32, 256}, {8, 256, 32},
                                    {1, 256, 256}, {8, 32, 32},  {3, 100, 77}};
  const auto of = [&](const auto& number) { return found(image, points, number); };
  EXPECT_EQ(of([](const Dims& at) { return 64 * at[0] * at[1] * at[2]; }), "64*batch*columns*lines");
  EXPECT_EQ(of([](const Dims& at) { return at[1] * at[2] + 1; }), "columns*lines+1");
  EXPECT_EQ(of([](const Dims& at) { return at[0] * at[1] * at[1] * 3; }), "3*batch*lines*lines");
  EXPECT_EQ(of([](const Dims& at) { return 2 * at[1] - at[2]; }), "-columns+2*lines");
  EXPECT_EQ(of([](const Dims& at) { return at[0] + at[1] + at[2]; }), "none") << "three terms";
  EXPECT_EQ(of([](const Dims& at) { return (at[1] + 1) / 2; }), "none") << "no polynomial";
}

TEST(ExtentFit, FewPointsTellNoSumThatTwoFunctionsAre) {
  const std::vector<FitSymbol> image = {{"batch"}, {"lines"}, {"columns"}};
  // The batch is one of two: a line and a square go through both.
  const std::vector<Dims> ends = {{1, 48, 80},   {1, 32, 256}, {8, 256, 32},
                                  {8, 256, 256}, {8, 32, 32},  {1, 100, 77}};
  EXPECT_EQ(found(image, ends, [](const Dims& at) { return at[0] * at[1]; }), "batch*lines");
  EXPECT_EQ(found(image, ends, [](const Dims& at) { return at[0] * at[0] * at[1]; }), "none");
  // Lines and columns differ by one.
  const std::vector<Dims> beside = {{2, 48, 49}, {1, 32, 33}, {8, 256, 257},
                                    {4, 77, 78}, {8, 33, 34}, {3, 5, 6}};
  EXPECT_EQ(found(image, beside, [](const Dims& at) { return at[2]; }), "none");
  EXPECT_EQ(found(image, {ends.begin(), ends.end() - 1}, [](const Dims& at) { return at[1]; }), "none")
      << "too few";
}

TEST(ExtentFit, SaysNothingWherePointsDoNotTell) {
  const auto sum = [](const Dims& at) { return at[0] + at[1]; };
  EXPECT_EQ(found(two, {{2, 16}, {3, 17}, {4, 18}, {5, 20}, {6, 30}}, sum), "none") << "too few";
  EXPECT_EQ(found(two, {{2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 8}}, sum), "none")
      << "one tells the other";
  const auto number = [](const Dims&) { return 1; };
  EXPECT_EQ(found(two, {{2, 16}, {3, 17}}, number), "none")
      << "not even that a number does not depend on them";
  EXPECT_EQ(found(two, {{1, 16}, {1, 17}, {1, 40}, {1, 77}}, sum), "length+1") << "the batch is always 1";
}

/// As rows that a router deals out to three experts.
TEST(ExtentFit, SizesWhoseSumIsGiven) {
  const std::vector<FitSymbol> parts = {{"a", 1}, {"b", 1}, {"c", 1}};
  std::vector<Dims> points;
  for (std::int64_t i = 1; i <= 16; ++i) points.push_back({i, i * i % 23, 64 - i - i * i % 23});
  EXPECT_EQ(found(parts, {points.begin(), points.end() - 1}, [](const Dims& at) { return at[0] + at[1]; }),
            "none")
      << "too few to believe that it is 64-c";
  EXPECT_EQ(found(parts, points, [](const Dims& at) { return 8 * at[2]; }), "8*c");
  EXPECT_EQ(found(parts, points, [](const Dims& at) { return at[0] * at[1]; }), "a*b");
  const ExtentFit fit(parts, points);
  ASSERT_EQ(fit.followers().size(), 1U);
  EXPECT_TRUE(hold_at(fit.followers(), {{"a", 30}, {"b", 30}, {"c", 4}}));
  EXPECT_FALSE(hold_at(fit.followers(), {{"a", 30}, {"b", 30}, {"c", 5}}));
}

TEST(ExtentFit, RefusesWhatIsNoPolynomial) {
  const std::vector<FitSymbol> one = {{"length", 1}};
  const std::vector<Dims> points = {{16}, {512}, {100}, {301}, {77}};
  EXPECT_EQ(found(one, points, [](const Dims& at) { return std::min<std::int64_t>(at[0], 256); }), "none");
  EXPECT_EQ(found(one, points, [](const Dims& at) { return (at[0] + 1) / 2; }), "none");
}

TEST(ExtentFit, SizesCountInTheirMultiples) {
  const std::vector<FitSymbol> one = {{"width", 32}};
  EXPECT_EQ(found(one, {{32}, {320}, {96}, {128}}, [](const Dims& at) { return at[0] / 16 + 1; }),
            "2*floor(width/32)+1");
}

TEST(ExtentFit, EqualSizesAreOne) {
  const std::vector<FitSymbol> square = {{"batch"}, {"lines"}, {"columns"}};
  const std::vector<Dims> points = {{2, 16, 16},   {15, 512, 512}, {3, 40, 40},
                                    {8, 512, 512}, {5, 77, 77},    {4, 100, 100}};
  EXPECT_EQ(found(square, points, [](const Dims& at) { return at[0] * at[2]; }), "batch*lines");
  const ExtentFit fit(square, points);
  EXPECT_TRUE(hold_at(fit.followers(), {{"batch", 1}, {"lines", 9}, {"columns", 9}}));
  EXPECT_FALSE(hold_at(fit.followers(), {{"batch", 1}, {"lines", 9}, {"columns", 8}}));
}

/// Lines and columns behind two windows that step by two, which are suggested as type rules give them.
TEST(ExtentFit, WhatIsSuggestedIsPartOfOthers) {
  const std::vector<FitSymbol> image = {{"lines", 1}, {"columns", 1}};
  const std::vector<Dims> points = {{64, 320}, {129, 77}, {200, 90}, {95, 303},
                                    {318, 66}, {77, 211}, {251, 254}};
  const auto half = [](std::int64_t size) { return (size - 1) / 2 + 1; };
  const auto fits = [&](ExtentFit& fit, const std::function<std::int64_t(const Dims&)>& number) {
    std::vector<std::int64_t> values;
    values.reserve(points.size());
    for (const Dims& point : points) values.push_back(number(point));
    const std::optional<Extent> extent = fit.of(values);
    return extent && extent->at({{"lines", 1001}, {"columns", 37}}) == number({1001, 37});
  };
  ExtentFit fit(image, points);
  const auto lines = [&](const Dims& at) { return half(half(at[0])); };
  const auto area = [&](const Dims& at) { return 64 * lines(at) * half(half(at[1])) + 5; };
  EXPECT_FALSE(fits(fit, lines));
  EXPECT_FALSE(fits(fit, area));
  for (const char* name : {"lines", "columns"})
    fit.suggest(Extent::parse("floor((floor((" + std::string(name) + "-1)/2)+1-1)/2)+1"));
  EXPECT_TRUE(fits(fit, lines));
  EXPECT_TRUE(fits(fit, area));
  EXPECT_TRUE(fits(fit, [&](const Dims& at) { return 3 * lines(at) * at[1]; }));
  EXPECT_TRUE(fits(fit, [&](const Dims& at) { return 12 * (lines(at) - 1) * at[1]; }))
      << "all but one of the lines";
  EXPECT_TRUE(fits(fit, [&](const Dims& at) { return lines(at) * half(half(at[1])) * 7 - lines(at); }));
  EXPECT_TRUE(fits(fit, [&](const Dims& at) { return 3 * at[0] * at[1]; })) << "a polynomial as before";
  EXPECT_FALSE(fits(fit, [&](const Dims& at) { return half(half(half(at[1]))); }));
}

/// As scores of patches beside one token more.
TEST(ExtentFit, SumsThatAreSuggestedMakeProducts) {
  const std::vector<FitSymbol> image = {{"batch", 1}, {"side", 1}};
  const std::vector<Dims> points = {{2, 64}, {9, 320}, {3, 100}, {7, 250}, {4, 177}, {5, 211}};
  ExtentFit fit(image, points);
  for (const char* said : {"floor(side/16)", "floor(side/16)*floor(side/16)+1"})
    fit.suggest(Extent::parse(said));
  std::vector<std::int64_t> values;
  for (const Dims& at : points) {
    const std::int64_t tokens = (at[1] / 16) * (at[1] / 16) + 1;
    values.push_back(3 * tokens * tokens);
  }
  const std::optional<Extent> found = fit.of(values);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->at({{"batch", 6}, {"side", 160}}), 3 * 101 * 101);
}

/// Borders of images of odd sizes, which follow lines, though columns say the same at all of these.
TEST(ExtentFit, WhatIsToldGoesBeforeWhatHasItsValuesByChance) {
  const std::vector<FitSymbol> image = {{"lines", 1}, {"columns", 1}};
  const std::vector<Dims> points = {{64, 150},  {129, 250}, {200, 120}, {95, 210},
                                    {318, 199}, {77, 299},  {251, 201}, {66, 100}};
  std::vector<std::int64_t> borders;
  for (const Dims& point : points) borders.push_back(point[0] % 2);
  const Extent border = Extent::parse("mod(lines,2)"), wide = Extent::parse("floor(columns/100)");
  ExtentFit chance(image, points);
  chance.suggest(wide);
  EXPECT_EQ(chance.of(borders), wide - 1);
  ExtentFit fit(image, points);
  fit.suggest(wide);
  fit.tell(border);
  EXPECT_EQ(fit.of(borders), border);
  EXPECT_TRUE(fit.equalities().empty());
  fit.tell(wide - 1);
  EXPECT_EQ(fit.of(borders), border);
  EXPECT_EQ(fit.equalities(), (std::map<Extent, Extent>{{wide - 1, border}})) << "equal at the points alone";
}

/// As windows of 8, whose last one is filled up.
TEST(ExtentFit, WhatFillsALastWindow) {
  const std::vector<FitSymbol> image = {{"batch", 1}, {"side", 1}};
  std::vector<Dims> points;
  for (const std::int64_t side : {64, 129, 202, 95, 318, 77, 251, 160})
    points.push_back({1 + side % 5, side});
  const auto found = [&](ExtentFit& fit, std::size_t count,
                         const std::function<std::int64_t(std::int64_t)>& number) {
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(number(points[i][1]));
    const std::optional<Extent> extent = fit.of(values);
    bool is_right = extent.has_value();
    for (std::int64_t side = 1; is_right && side < 40; ++side)
      is_right = extent->at({{"batch", 3}, {"side", side}}) == number(side);
    return is_right;
  };
  const auto filling = [](std::int64_t side) { return (8 - side % 8) % 8; };
  const auto windows = [](std::int64_t side) { return (side + 7) / 8; };
  ExtentFit fit(image, points);
  EXPECT_TRUE(found(fit, points.size(), filling));
  EXPECT_TRUE(found(fit, points.size(), [](std::int64_t side) { return (side - 1) % 16; }));
  EXPECT_FALSE(found(fit, points.size(), windows));
  fit.suggest(Extent::parse("8*ceil(side/8)"));
  EXPECT_TRUE(found(fit, points.size(), windows));
  EXPECT_TRUE(found(fit, points.size(), [&](std::int64_t side) { return 8 * windows(side); }));
  EXPECT_FALSE(found(fit, points.size(), [](std::int64_t side) { return side % 2; })) << "many numbers are";
  ExtentFit few(image, {points.begin(), points.begin() + 6});
  EXPECT_FALSE(found(few, 6, filling)) << "too few say so";
}

}  // namespace
}  // namespace sylvite::extent_fit_test
