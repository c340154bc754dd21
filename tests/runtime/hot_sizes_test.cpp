#include "runtime/hot_sizes.h"

#include <gtest/gtest.h>

namespace sylvite::hot_sizes_test {
namespace {

TEST(HotSizes, AreThoseThatHadAPartOfAllRuns) {
  HotSizes sizes;
  Uses often, seldom;
  int hot = 0;
  for (int run = 0; run < 32 * 64 * 4; ++run) {
    if (run % 32 == 0) EXPECT_FALSE(sizes.note_run(seldom, 0));
    hot += sizes.note_run(often, 0) ? 1 : 0;
  }
  EXPECT_GT(hot, 0);
  often.is_decided = true;
  for (int run = 0; run < 64 * 4; ++run) EXPECT_FALSE(sizes.note_run(often, 0));
}

TEST(HotSizes, AreRunForAsLongAsCompilingTakes) {
  HotSizes sizes;
  Uses uses;
  for (int run = 0; run < 64 * 4; ++run) EXPECT_FALSE(sizes.note_run(uses, 3600));
  bool is_hot = false;
  for (int run = 0; run < 64; ++run) is_hot = sizes.note_run(uses, 0) || is_hot;
  EXPECT_TRUE(is_hot);
}

}  // namespace
}  // namespace sylvite::hot_sizes_test
