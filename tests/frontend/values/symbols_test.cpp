#include "sylvite/symbols.h"

#include <gtest/gtest.h>

namespace sylvite::symbols_test {
namespace {

const Extent a = Extent::symbol("a");
const Extent b = Extent::symbol("b");

Symbols ranges() {
  Symbols symbols;
  symbols.table["a"] = {1, 8, {}};
  symbols.table["b"] = {16, 32, {}};
  symbols.origin = "here";
  return symbols;
}

TEST(Symbols, DecidesWithoutGuards) {
  Symbols symbols = ranges();
  EXPECT_TRUE(symbols.equal(3, 3));
  EXPECT_FALSE(symbols.equal(3, 4));
  EXPECT_TRUE(symbols.equal(2 * a + a, 3 * a));
  EXPECT_FALSE(symbols.equal(a, b));
  EXPECT_FALSE(symbols.equal(a, 0));
  EXPECT_TRUE(symbols.at_least(b, a));
  EXPECT_FALSE(symbols.at_least(a, b));
  EXPECT_FALSE(symbols.equal(std::vector<Extent>{a}, {a, a}));
  EXPECT_TRUE(symbols.guards().empty());
}

TEST(Symbols, NotesWhatItCannotDecide) {
  Symbols symbols = ranges();
  EXPECT_TRUE(symbols.equal(a, 4));
  EXPECT_TRUE(symbols.equal(a, 4));
  EXPECT_TRUE(symbols.at_least(a, 3));
  ASSERT_EQ(symbols.guards().size(), 2U);
  EXPECT_EQ(symbols.guards()[0].to_string(), "a-4 = 0");
  EXPECT_EQ(symbols.guards()[1].to_string(), "a-3 >= 0");
  EXPECT_EQ(symbols.guards()[1].origin, "here");
  EXPECT_TRUE(symbols.guards()[0].holds({{"a", 4}}));
  EXPECT_FALSE(symbols.guards()[0].holds({{"a", 5}}));
  EXPECT_FALSE(symbols.guards()[1].holds({{"a", 2}}));
}

}  // namespace
}  // namespace sylvite::symbols_test
