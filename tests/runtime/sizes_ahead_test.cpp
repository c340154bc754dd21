#include "runtime/sizes_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace sylvite::sizes_ahead_test {
namespace {

using testing::ElementsAre;

SizeSymbol symbol(const char* name, SizeRange range, bool is_guessed = false) {
  return {name, std::move(range), is_guessed};
}

TEST(SizesAhead, AreEndsAndBeginningsOfClasses) {
  ModelSizes model;
  model.symbols = {symbol("batch", {1, 20, {1}})};
  EXPECT_THAT(sizes_ahead(model, false), ElementsAre(Sizes{2}, Sizes{20}, Sizes{16}));
  model.symbols = {symbol("height", {96, 320, {224}, 32})};
  EXPECT_THAT(sizes_ahead(model, false), ElementsAre(Sizes{128}, Sizes{320}, Sizes{256}, Sizes{96}));
}

TEST(SizesAhead, EachSymbolChangesBesideSmallAndLargeOthers) {
  ModelSizes model;
  model.symbols = {symbol("batch", {1, 4, {1}}), symbol("sequence", {1, 8, {1}})};
  EXPECT_THAT(sizes_ahead(model, false), ElementsAre(Sizes{4, 8}, Sizes{2, 8}, Sizes{4, 2}, Sizes{1, 2},
                                                     Sizes{1, 8}, Sizes{2, 1}, Sizes{4, 1}));
}

TEST(SizesAhead, ThoseOfTheClassThatMostSizesAreInComeFirst) {
  ModelSizes model;
  model.symbols = {symbol("batch", {1, 4, {1}}), symbol("sequence", {1, 256, {64}})};
  const std::vector<Sizes> ahead = sizes_ahead(model, false);
  EXPECT_EQ(ahead.front(), (Sizes{4, 256})) << "as 723 of 1,024 combinations";
  EXPECT_THAT(ahead.back(), testing::AnyOf(Sizes{1, 1}, Sizes{4, 1}, Sizes{2, 1}));
}

TEST(SizesAhead, WhatNobodyGaveStaysAsItIs) {
  ModelSizes model;
  model.symbols = {symbol("batch", {1, 4, {1}}), symbol("sequence", {1, 512, {128}}, true)};
  EXPECT_THAT(sizes_ahead(model, false), ElementsAre(Sizes{4, 128}, Sizes{2, 128}));
}

TEST(SizesAhead, CombineTheClassesOfADevice) {
  ModelSizes model;
  model.symbols = {symbol("batch", {1, 16, {4}}), symbol("sequence", {8, 256, {64}})};
  const std::vector<Sizes> ahead = sizes_ahead(model, true);
  for (const std::int64_t batch : {1, 2, 9})
    for (const std::int64_t sequence : {8, 9, 33, 129})
      EXPECT_THAT(ahead, testing::Contains(Sizes{batch, sequence}));
  EXPECT_EQ(ahead.size(), 24U);
}

TEST(SizesBetween, AreSpreadOverTheRangesThatWereGiven) {
  ModelSizes model;
  model.symbols = {symbol("batch", {1, 8, {1}}, true), symbol("width", {64, 128, {96}, 32})};
  EXPECT_THAT(sizes_between(model), ElementsAre(Sizes{1, 64}, Sizes{1, 96}, Sizes{1, 128}));
  model.symbols = {symbol("height", {128, 320, {224}, 32}), symbol("width", {1, 1 << 20, {224}})};
  const std::vector<Sizes> both = sizes_between(model);
  EXPECT_EQ(both.size(), 36U);
  EXPECT_THAT(both, testing::Contains(Sizes{320, 1}));
  EXPECT_THAT(both, testing::Contains(Sizes{128, 512}));
  EXPECT_EQ(std::set<Sizes>(both.begin(), both.end()).size(), 36U);
  model.symbols.pop_back();
  model.symbols[0].is_guessed = true;
  EXPECT_THAT(sizes_between(model), ElementsAre());
}

TEST(SizesScattered, AreAnyOfTheRangesThatWereGiven) {
  ModelSizes model;
  model.symbols = {symbol("batch", {1, 8, {1}}, true), symbol("width", {64, 256, {96}, 32}),
                   symbol("length", {1, 1 << 20, {224}})};
  const std::vector<Sizes> all = sizes_scattered(model, 40);
  EXPECT_GT(all.size(), 30U);
  EXPECT_EQ(std::set<Sizes>(all.begin(), all.end()).size(), all.size());
  std::set<std::int64_t> widths;
  for (const Sizes& sizes : all) {
    EXPECT_EQ(sizes[0], 1);
    EXPECT_TRUE(model.symbols[1].range.contains(sizes[1]));
    EXPECT_LE(sizes[2], 512);
    widths.insert(sizes[1]);
  }
  EXPECT_EQ(widths.size(), 7U);
  EXPECT_EQ(all.front(), (Sizes{1, 64, 1}));
  const auto is_short = [](const Sizes& sizes) { return sizes[2] < 32; };
  EXPECT_GT(std::ranges::count_if(all, is_short), 8) << "of 512, half of all powers of two";
  EXPECT_EQ(sizes_scattered(model, 40), all);
  for (SizeSymbol& each : model.symbols) each.is_guessed = true;
  EXPECT_THAT(sizes_scattered(model, 40), ElementsAre());
}

}  // namespace
}  // namespace sylvite::sizes_ahead_test
