#include "tests/support/isolated.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace sylvite::isolated_test {
namespace {

TEST(Isolated, WaitingIsNoTimeout) {
  const auto wait = [] {
    usleep(500'000);
    return Outcome{"pass", "late"};
  };
  const Outcome outcome = run_isolated(wait, 0.1, 4'000);
  EXPECT_EQ(outcome.kind, "pass");
  EXPECT_EQ(outcome.reason, "late");
}

TEST(Isolated, ComputingForTooLongIsATimeout) {
  const auto spin = [] {
    while (getpid() != 0) continue;
    return Outcome{"pass", ""};
  };
  EXPECT_EQ(run_isolated(spin, 0.1, 4'000).kind, "timeout");
}

}  // namespace
}  // namespace sylvite::isolated_test
