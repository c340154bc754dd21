#include "base/table.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/progress.h"

namespace sylvite::table_test {
namespace {

TEST(Table, LinesUpAndRightAlignsNumbers) {
  Table table({"kernel", "ms"});
  table.add_row({"conv", "1.25"});
  table.add_row({"a", "10.50"});
  EXPECT_EQ(table.to_string(),
            "kernel     ms\n"
            "------  -----\n"
            "conv     1.25\n"
            "a       10.50\n");
  EXPECT_THROW(table.add_row({"x"}), InternalError);
}

TEST(FormatSeconds, IsShort) {
  EXPECT_EQ(format_seconds(1.24), "1.2s");
  EXPECT_EQ(format_seconds(185), "3m05s");
  EXPECT_EQ(format_seconds(7800), "2h10m");
}

}  // namespace
}  // namespace sylvite::table_test
