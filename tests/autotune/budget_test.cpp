#include "autotune/budget.h"

#include <gtest/gtest.h>

namespace sylvite::budget_test {
namespace {

TEST(Budget, GoesWhereTheTimeIs) {
  std::vector<TaskOutlook> outlooks(3);
  outlooks[0].program_us = 10;
  outlooks[1].program_us = 1000;
  outlooks[2].program_us = 500;
  EXPECT_EQ(choose_task(outlooks), 1);
  outlooks[1].open = false;
  EXPECT_EQ(choose_task(outlooks), 2);
  outlooks[0].open = outlooks[2].open = false;
  EXPECT_EQ(choose_task(outlooks), 3) << "none is open";
}

TEST(Budget, MovesOnWhenABatchBringsNothing) {
  std::vector<TaskOutlook> outlooks(2);
  outlooks[0].program_us = 1000;
  outlooks[1].program_us = 400;
  int batches = 0;
  for (; choose_task(outlooks) == 0; ++batches) update_outlook(outlooks[0], 100, 100, 1);
  EXPECT_EQ(batches, 2);
  update_outlook(outlooks[0], 100, 60, 1);  // 40% in one batch
  EXPECT_EQ(choose_task(outlooks), 0);
}

TEST(Budget, TheHeaviestDoesNotTakeAllWhenNothingIsFoundAnyMore) {
  std::vector<TaskOutlook> outlooks(3);
  outlooks[0].program_us = 1000;
  outlooks[1].program_us = 800;
  outlooks[2].program_us = 10;
  std::vector<int> batches(3);
  for (int i = 0; i < 90; ++i) {
    const std::size_t chosen = choose_task(outlooks);
    ++batches[chosen];
    update_outlook(outlooks[chosen], 100, 100, 1);
  }
  EXPECT_GE(batches[1], 30);
  EXPECT_GE(batches[2], 20);
}

TEST(Budget, CheapBatchesGoFirst) {
  std::vector<TaskOutlook> outlooks(2);
  outlooks[0].program_us = outlooks[1].program_us = 100;
  outlooks[0].batch_seconds = 5;
  EXPECT_EQ(choose_task(outlooks), 1);
}

}  // namespace
}  // namespace sylvite::budget_test
