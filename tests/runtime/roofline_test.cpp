#include "runtime/roofline.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sylvite::roofline_test {
namespace {

constexpr std::int64_t megabyte = 1 << 20;

MachinePeaks sample_peaks() {
  MachinePeaks peaks;
  peaks.cpu = "a CPU";
  peaks.operations = {{DType::f32, 100e9}, {DType::bf16, 400e9}};
  peaks.l2_rate = 50e9;
  peaks.readings = {{megabyte, 40e9}, {16 * megabyte, 10e9}};
  return peaks;
}

TEST(Roofline, TheLongestTimeIsTheBound) {
  const MachinePeaks peaks = sample_peaks();
  const auto bound = [&](double operations, double bytes, double weights) {
    return bound_of({operations, DType::f32, bytes, weights}, peaks, 10e9);
  };
  EXPECT_EQ(bound(1e6, 1000, 1000).limit, Limit::compute);
  EXPECT_DOUBLE_EQ(bound(1e6, 1000, 1000).us, 10) << "10^6 operations at 10^11 a second";
  EXPECT_EQ(bound(1000, 1e6, 1000).limit, Limit::l2);
  EXPECT_DOUBLE_EQ(bound(1000, 1e6, 1000).us, 20);
  EXPECT_EQ(bound(1000, 1e6, 1e6).limit, Limit::weights);
  EXPECT_DOUBLE_EQ(bound(1000, 1e6, 1e6).us, 100);
}

TEST(Roofline, EveryElementHasItsOwnRateOrThatOfF32) {
  const auto us = [](DType dtype) { return bound_of({4e6, dtype, 0, 0}, sample_peaks(), 1e9).us; };
  EXPECT_DOUBLE_EQ(us(DType::f32), 40);
  EXPECT_DOUBLE_EQ(us(DType::bf16), 10);
  EXPECT_DOUBLE_EQ(us(DType::f64), 40);
}

TEST(Roofline, ReadingRatesAreBetweenThoseMeasured) {
  const MachinePeaks peaks = sample_peaks();
  EXPECT_DOUBLE_EQ(read_rate(peaks, 0), 40e9);
  EXPECT_DOUBLE_EQ(read_rate(peaks, megabyte), 40e9);
  EXPECT_NEAR(read_rate(peaks, 4 * megabyte), 20e9, 1) << "half of the way by logarithms";
  EXPECT_DOUBLE_EQ(read_rate(peaks, 16 * megabyte), 10e9);
  EXPECT_DOUBLE_EQ(read_rate(peaks, 1000 * megabyte), 10e9);
}

TEST(Roofline, WinogradSparesProducts) {
  const Work work{144, DType::f32, 7, 3};
  EXPECT_DOUBLE_EQ(work_in_form(work, {"conv_winograd", {{"tile", 4}}}).operations, 36)
      << "6 x 6 for 4 x 4 of 3 x 3";
  EXPECT_DOUBLE_EQ(work_in_form(work, {"conv_winograd", {{"tile", 2}}}).operations, 64)
      << "4 x 4 for 2 x 2 of 3 x 3";
  EXPECT_DOUBLE_EQ(work_in_form(work, {"conv_winograd", {{"tile", 4}}}).bytes, 7);
  EXPECT_DOUBLE_EQ(work_in_form(work, {"conv_blocked", {}}).operations, 144);
}

TEST(Roofline, LimitsHaveNames) {
  EXPECT_EQ(limit_name(Limit::compute), "compute");
  EXPECT_EQ(limit_name(Limit::l2), "L2");
  EXPECT_EQ(limit_name(Limit::weights), "weights");
}

}  // namespace
}  // namespace sylvite::roofline_test
