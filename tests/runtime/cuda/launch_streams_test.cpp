#include "runtime/cuda/launch_streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "lowering/plan/plan.h"

namespace sylvite::launch_streams_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TouchedBytes read(std::int64_t begin, std::int64_t end) {
  return {0, begin, end, false};
}
TouchedBytes write(std::int64_t begin, std::int64_t end) {
  return {0, begin, end, true};
}

/// A value, two that are made of it, and their sum.
std::vector<Touches> diamond() {
  return {{write(0, 4)},
          {read(0, 4), write(4, 8)},
          {read(0, 4), write(8, 12)},
          {read(4, 8), read(8, 12), write(0, 4)}};
}

TEST(LaunchStreams, BranchesRunSideBySide) {
  const std::vector<StreamPlace> places = spread(diamond(), 2);
  EXPECT_EQ(places[1].stream, 0U);
  EXPECT_THAT(places[1].waits, IsEmpty());
  EXPECT_EQ(places[2].stream, 1U);
  EXPECT_THAT(places[2].waits, ElementsAre(0));
  EXPECT_EQ(places[3].stream, 1U);
  EXPECT_THAT(places[3].waits, ElementsAre(1));
}

TEST(LaunchStreams, OneStreamNeedsNoWaiting) {
  for (const StreamPlace& place : spread(diamond(), 1)) {
    EXPECT_EQ(place.stream, 0U);
    EXPECT_THAT(place.waits, IsEmpty());
  }
}

/// A branch may not write what another one still reads, even when the values have nothing to do with each
/// other.
TEST(LaunchStreams, SharedMemoryOrdersLaunches) {
  const std::vector<StreamPlace> places =
      spread({{write(0, 4)}, {read(0, 4), write(4, 8)}, {write(3, 4)}}, 2);
  EXPECT_EQ(places[2].stream, 0U);
}

TEST(LaunchStreams, ConflictsKeepTheirOrder) {
  std::mt19937 random(5);
  const auto number = [&](int below) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(below));
  };
  for (int round = 0; round < 100; ++round) {
    std::vector<Touches> launches(20);
    for (Touches& touches : launches) {
      const std::int64_t out = number(40);
      touches = {write(out, out + 1 + number(4))};
      for (int i = 0; i < 2; ++i) {
        const std::int64_t in = number(40);
        touches.push_back(read(in, in + 1 + number(4)));
      }
    }
    const std::vector<StreamPlace> places = spread(launches, 1 + static_cast<std::size_t>(number(4)));
    std::vector<std::vector<bool>> after(launches.size(), std::vector<bool>(launches.size()));
    for (std::size_t i = 0; i < launches.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const bool is_awaited = std::ranges::count(places[i].waits, j) > 0;
        if (places[i].stream != places[j].stream && !is_awaited) continue;
        after[i][j] = true;
        for (std::size_t k = 0; k < j; ++k) after[i][k] = after[i][k] || after[j][k];
      }
      for (std::size_t j = 0; j < i; ++j) {
        for (const TouchedBytes& a : launches[i]) {
          for (const TouchedBytes& b : launches[j]) {
            const bool conflict = (a.is_written || b.is_written) && a.begin < b.end && b.begin < a.end;
            EXPECT_TRUE(!conflict || after[i][j]) << i << " after " << j;
          }
        }
      }
    }
  }
}

TEST(LaunchStreams, KernelsOfALibraryShareAWorkspace) {
  cuda::NotedLaunch launch;
  EXPECT_THAT(touches_beside_arguments({launch}), IsEmpty());
  launch.library = std::make_shared<LibraryCall>();
  const Touches touches = touches_beside_arguments({launch});
  EXPECT_EQ(spread({touches, touches}, 2)[1].stream, 0U);
  launch.library = std::make_shared<LibraryCall>();
  EXPECT_EQ(spread({touches, touches_beside_arguments({launch})}, 2)[1].stream, 1U);
}

}  // namespace
}  // namespace sylvite::launch_streams_test
