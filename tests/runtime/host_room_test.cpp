#include "runtime/host_room.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace sylvite::host_room_test {
namespace {

constexpr std::size_t small = 1'000, large = 1'000'000;

TEST(HostRoom, ProgramsThatTakeTurnsUseTheSameMemory) {
  HostRoom one(large), other(large);
  const void* first = nullptr;
  {
    const HostRoom::Run run(one);
    first = one.data();
  }
  const HostRoom::Run run(other);
  EXPECT_EQ(other.data(), first);
  const HostRoom::Run beside(one);
  EXPECT_NE(one.data(), first);
}

TEST(HostRoom, ASmallRoomKeepsItsMemory) {
  HostRoom one(small), other(small);
  const void* first = nullptr;
  {
    const HostRoom::Run run(one);
    first = one.data();
  }
  const HostRoom::Run run(other);
  EXPECT_NE(other.data(), first);
}

TEST(HostRoom, PointersAreWhereTheRunHasItsValues) {
  HostRoom room(large);
  std::uint8_t* begin = nullptr;
  std::uint8_t* before = nullptr;
  room.add_use(&begin, 0);
  room.add_use(&before, -64);
  std::optional<HostRoom> other(large);
  for (int turn = 0; turn < 2; ++turn) {
    std::optional<HostRoom::Run> elsewhere;
    if (turn == 1) elsewhere.emplace(*other);  // takes what the first run had
    const HostRoom::Run run(room);
    EXPECT_EQ(static_cast<const void*>(begin), room.data());
    EXPECT_EQ(before + 64, begin);
  }
}

TEST(HostRoom, ResultsOfOneProgramBecomeAnothers) {
  HostRoom one(0), other(0);
  std::shared_ptr<void> result = one.take_result(large);
  const void* at = result.get();
  result.reset();
  result = other.take_result(large);
  EXPECT_EQ(result.get(), at);
  EXPECT_NE(one.take_result(large).get(), at);
}

}  // namespace
}  // namespace sylvite::host_room_test
