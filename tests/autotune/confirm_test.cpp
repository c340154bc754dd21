#include "autotune/confirm.h"

#include <gtest/gtest.h>

namespace sylvite::confirm_test {
namespace {

/// A program of made-up times: each run takes their sum on the clock.
struct FakeProgram {
  double& clock;
  std::vector<double> kernel_us;
  std::vector<double> operator()() const {
    for (const double us : kernel_us) clock += us * 1e-6;
    return kernel_us;
  }
};

TEST(Confirm, RunsInTurnsUntilTheDeadline) {
  double clock = 0;
  const auto [incumbent, challenger] =
      race_programs(FakeProgram{clock, {100, 50}}, FakeProgram{clock, {80, 20}}, 0.01, [&] { return clock; });
  EXPECT_EQ(incumbent.run_us.size(), challenger.run_us.size());
  EXPECT_GE(incumbent.run_us.size(), least_confirming_runs);
  EXPECT_EQ(incumbent.run_us[0], 150);
  EXPECT_EQ(challenger.kernel_us[1][0], 20);
  EXPECT_LT(clock, 0.01 + 3 * 250e-6);
}

TEST(Confirm, ASlowModelYieldsNothing) {
  double clock = 0;
  const FakeProgram slow{clock, {1e6}};
  const auto times = race_programs(slow, slow, 0.5, [&] { return clock; });
  EXPECT_LT(times.first.run_us.size(), least_confirming_runs);
}

TEST(Confirm, KeepsWhatIsFasterInTheModel) {
  ModelTimes incumbent;
  ModelTimes challenger;
  incumbent.kernel_us = {{100, 101, 99}, {50, 50, 51}, {10, 10, 10}};
  challenger.kernel_us = {{90, 91, 90}, {52, 53, 52}, {10, 10, 10}};
  EXPECT_EQ(holds_in_model(incumbent, challenger), (std::vector<bool>{true, false, false}));
}

}  // namespace
}  // namespace sylvite::confirm_test
