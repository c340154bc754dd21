#include "runtime/cuda/run_values.h"

#include <gmock/gmock.h>

namespace sylvite::run_values_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t mega = 1 << 20;

cuda::NotedLaunch launch_at(const std::vector<std::uint64_t>& offsets) {
  cuda::NotedLaunch launch;
  cuda::PointerArgument pointers;
  for (const std::uint64_t offset : offsets)
    pointers.words.push_back(cuda::encode_address({cuda::Region::arena, 0, offset}));
  pointers.words.push_back(7);  // a number
  launch.arguments = {pointers, cuda::MapArgument{{}, {cuda::Region::arena, 0, offsets.at(0)}}};
  return launch;
}

cuda::SymbolicAddress word(const cuda::NotedLaunch& launch, std::size_t i) {
  return cuda::decode_address(std::get<cuda::PointerArgument>(launch.arguments[0]).words[i]);
}

/// Two large values that take turns at one place, beside a small one that lives throughout.
std::vector<ArenaValue> three_values() {
  return {{0, 2 * mega, {0, 1}}, {0, mega, {2, 3}}, {2 * mega, 64, {0, 3}}};
}

TEST(RunValues, AddressesNameTheValueThatLivesThere) {
  const std::vector<ArenaValue> values = three_values();
  RunValues places(values);
  for (int times = 0; times < 2; ++times) {
    places.restart();
    for (const std::uint32_t value : {0U, 0U, 1U}) {
      std::vector<cuda::NotedLaunch> noted = {launch_at({256, 2 * mega + 32, 3 * mega})};
      places.name(noted);
      EXPECT_EQ(word(noted[0], 0), (cuda::SymbolicAddress{cuda::Region::value, value, 256}));
      EXPECT_EQ(word(noted[0], 1), (cuda::SymbolicAddress{cuda::Region::value, 2, 32}));
      EXPECT_EQ(word(noted[0], 2).region, cuda::Region::arena) << "nothing lies there";
      EXPECT_EQ(std::get<cuda::MapArgument>(noted[0].arguments[1]).address, word(noted[0], 0));
      EXPECT_EQ(std::get<cuda::PointerArgument>(noted[0].arguments[0]).words[3], 7);
    }
    EXPECT_EQ(places.name({BufferKind::arena, 128}), (cuda::SymbolicAddress{cuda::Region::value, 1, 128}));
    EXPECT_EQ(places.name({BufferKind::input, 4}), (cuda::SymbolicAddress{cuda::Region::input, 4, 0}));
  }
  EXPECT_THAT(places.in_arena(1024), ElementsAre(1024, 1024, 1024 + 2 * mega));
  EXPECT_THAT(places.in_block(1024), ElementsAre(0, 0, 1024));
  EXPECT_EQ(places.block_bytes(), 64U);
}

TEST(RunValues, TellWhatEachLaunchNeedsFirstAndLast) {
  const std::vector<ArenaValue> values = three_values();
  Bindings bindings;
  bindings.inputs.resize(3);
  bindings.results.resize(2);
  bindings.outputs = {{BufferKind::output, 0}, {BufferKind::input, 2}};
  const auto argument = [](BufferKind kind, std::int64_t number) {
    Argument made;
    made.place = {kind, number};
    return made;
  };
  bindings.launches.resize(3);
  bindings.launches[0].arguments = {argument(BufferKind::input, 0), argument(BufferKind::input, 2)};
  bindings.launches[1].arguments = {argument(BufferKind::input, 0), argument(BufferKind::output, 0)};
  bindings.launches[2].arguments = {argument(BufferKind::output, 0), argument(BufferKind::input, 1)};
  const std::vector<LaunchTurn> turns = RunValues(values).turns(bindings);
  EXPECT_THAT(turns[0].values, ElementsAre(0));
  EXPECT_THAT(turns[0].outputs, IsEmpty());
  EXPECT_THAT(turns[0].last_inputs, IsEmpty());
  EXPECT_THAT(turns[1].outputs, ElementsAre(0));
  EXPECT_THAT(turns[1].last_inputs, ElementsAre(0));
  EXPECT_THAT(turns[1].last_values, ElementsAre(0));
  EXPECT_THAT(turns[2].values, ElementsAre(1));
  EXPECT_THAT(turns[2].outputs, IsEmpty());
  EXPECT_THAT(turns[2].last_inputs, ElementsAre(1)) << "input 2 is a result";
  EXPECT_THAT(turns[2].last_values, IsEmpty()) << "value 1 lives to the end";
}

TEST(RunValues, OfALargeArenaTakeMemoryOfTheirOwnWhereTheyAreLarge) {
  const std::vector<ArenaValue> values = {{0, 400 * mega, {0, 1}}, {400 * mega, mega, {0, 1}}};
  EXPECT_THAT(RunValues(values).in_block(64), ElementsAre(0, 64));
}

}  // namespace
}  // namespace sylvite::run_values_test
