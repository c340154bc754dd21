#include "runtime/cuda/recorded_graphs.h"

#include <gtest/gtest.h>

namespace sylvite::recorded_graphs_test {
namespace {

DeviceArguments at(cuda::DevicePointer address) {
  return {{address}, {address + 64}, 0};
}

TEST(RecordedGraphs, AreWantedWhenAddressesComeAgain) {
  RecordedGraphs graphs;
  EXPECT_EQ(graphs.find(at(256)), nullptr);
  EXPECT_FALSE(graphs.is_wanted(at(256)));
  EXPECT_FALSE(graphs.is_wanted(at(512)));
  EXPECT_TRUE(graphs.is_wanted(at(256)));
  const cuda::Graph& added = graphs.add(at(256), cuda::Graph());
  EXPECT_EQ(graphs.find(at(256)), &added);
  EXPECT_EQ(graphs.find(at(512)), nullptr);
}

TEST(RecordedGraphs, TellRunsApartByAllAddresses) {
  RecordedGraphs graphs;
  graphs.add(at(256), cuda::Graph());
  DeviceArguments other = at(256);
  other.work = 1024;
  EXPECT_EQ(graphs.find(other), nullptr);
  other = at(256);
  other.outputs[0] += 64;
  EXPECT_EQ(graphs.find(other), nullptr);
}

TEST(RecordedGraphs, KeepThoseThatWereUsedLast) {
  RecordedGraphs graphs;
  const auto address = [](std::size_t i) { return static_cast<cuda::DevicePointer>(i + 1) * 256; };
  for (std::size_t i = 0; i < RecordedGraphs::most_kept; ++i) graphs.add(at(address(i)), cuda::Graph());
  EXPECT_NE(graphs.find(at(address(0))), nullptr);
  graphs.add(at(address(RecordedGraphs::most_kept)), cuda::Graph());
  EXPECT_NE(graphs.find(at(address(0))), nullptr);
  EXPECT_EQ(graphs.find(at(address(1))), nullptr);
}

TEST(RecordedGraphs, AreRecordedABoundedNumberOfTimes) {
  RecordedGraphs graphs;
  int wanted = 0;
  for (cuda::DevicePointer i = 1; i <= 200; ++i)
    for (int times = 0; times < 2; ++times)
      if (graphs.is_wanted(at(i * 256))) ++wanted;
  EXPECT_EQ(wanted, RecordedGraphs::most_recordings);
}

}  // namespace
}  // namespace sylvite::recorded_graphs_test
