#include "base/size_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace sylvite::size_range_test {
namespace {

std::string refusal(const std::string& text) {
  try {
    return "accepted: " + parse_size_range(text, "x").to_string();
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(SizeRange, ReadsWhatPeopleWrite) {
  const std::pair<const char*, SizeRange> rows[] = {
      {"8", 8},
      {"1..64", {1, 64}},
      {"0..512@7", {0, 512, {7}}},
      {"1..", {1, SizeRange::open}},
      {"1..@4", {1, SizeRange::open, {4}}},
      {"1..512@128+384", {1, 512, {128, 384}}},
      {"32..1024%32", {32, 1024, {}, 32}},
      {"32..1024%32@224+512", {32, 1024, {224, 512}, 32}},
      {"32..1024@224%32", {32, 1024, {224}, 32}},
      {"1..1000%32", {32, 992, {}, 32}},
      {"7..7", 7},
  };
  for (const auto& [text, range] : rows) {
    const SizeRange read = parse_size_range(text, "x");
    EXPECT_EQ(read.low, range.low) << text;
    EXPECT_EQ(read.high, range.high) << text;
    EXPECT_EQ(read.multiple, range.multiple) << text;
    if (!read.is_fixed()) EXPECT_EQ(read.hints, range.hints) << text;
    EXPECT_EQ(parse_size_range(read.to_string(), "x").to_string(), read.to_string()) << text;
  }
}

TEST(SizeRange, RefusesInOneLine) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "x: '' is not a size; expected a size or a range such as 8, 1..64"},
      {"many", "x: 'many' is not a size"},
      {"1-64", "x: '1-64' is not a size"},
      {"..64", "x: '' is not a size"},
      {"1..x", "x: 'x' is not a size"},
      {"1...4", "x: '.4' is not a size"},
      {"0", "x: 0 is not a size; sizes begin at 1"},
      {"-1", "x: -1 is not a size; sizes begin at 1"},
      {"0..0", "x: 0 is not a size"},
      {"-1..4", "x: -1 is not a size; sizes begin at 0"},
      {"0..4@0", "x: 0 is not a size; sizes begin at 1"},
      {"64..1", "x: the range ends at 1, before it begins at 64"},
      {"1..64@65", "x: 65 after '@' is not in the range 1..64"},
      {"2..64@1", "x: 1 after '@' is not in the range 2..64"},
      {"1..64@", "x: '' is not a size"},
      {"1..64@8+", "x: '' is not a size"},
      {"1..64@8@9", "x: '@' is given twice"},
      {"32..64%32%8", "x: '%' is given twice"},
      {"32..1024%32@100", "x: 100 after '@' is no multiple of 32"},
      {"33..63%32", "x: no multiple of 32 lies between 33 and 63"},
      {"1..64%0", "x: 0 is not a size"},
      {"8@4", "x: '@' and '%' belong to a range"},
      {"8%4", "x: '@' and '%' belong to a range"},
      {"4294967296", "x: 4294967296 is too large; at most 2147483647"},
      {"99999999999999999999", "is too large; at most 2147483647"},
      {"1..2147483648", "x: 2147483648 is too large; at most 2147483647"},
  };
  for (const auto& [text, message] : rows) {
    EXPECT_THAT(refusal(text), testing::HasSubstr(message)) << text;
    EXPECT_THAT(refusal(text), testing::Not(testing::HasSubstr("\n"))) << text;
  }
}

TEST(SizeRange, TellsWhatItContains) {
  const SizeRange range{32, 128, {}, 32};
  for (const std::int64_t size : {32, 64, 128}) EXPECT_TRUE(range.contains(size)) << size;
  for (const std::int64_t size : {0, 16, 33, 160, -32}) EXPECT_FALSE(range.contains(size)) << size;
}

}  // namespace
}  // namespace sylvite::size_range_test
