#include "runtime/cuda/noted_launch.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "runtime/cuda/recorder.h"

namespace sylvite::cuda::noted_launch_test {
namespace {

using testing::ElementsAre;

TEST(CudaNotedLaunch, AddressesSurviveOneWord) {
  const SymbolicAddress samples[] = {{Region::weight, 0, 0},
                                     {Region::arena, 0, (std::uint64_t{1} << 36) - 1},
                                     {Region::scratch, 0, 256},
                                     {Region::input, (1U << 20) - 1, 0},
                                     {Region::output, 7, 64}};
  for (const SymbolicAddress& address : samples) {
    EXPECT_NE(encode_address(address), 0);
    EXPECT_EQ(decode_address(encode_address(address)), address);
  }
  EXPECT_THROW((void)encode_address({Region::arena, 0, std::uint64_t{1} << 36}), UnsupportedError);
  EXPECT_THROW((void)encode_address({Region::input, 1U << 20, 0}), UnsupportedError);
  EXPECT_THROW((void)decode_address(0x1234), InternalError);
}

TEST(CudaNotedLaunch, TemplatesNameTheirArguments) {
  CudaObject object;
  object.image = "code";
  object.architecture = "sm_90a";
  object.launch.entry = "product";
  object.launch.shape.grid[0] = 7;
  object.launch.shape.block[0] = 256;
  object.launch.maps.resize(2);
  object.launch.maps[0].argument = 1;
  object.launch.pointers = {0, -1, 2};
  object.launch.numbers = {512};
  const std::vector<std::uint64_t> words = {encode_address({Region::input, 0, 0}),
                                            encode_address({Region::weight, 3, 0}),
                                            encode_address({Region::arena, 0, 512})};
  const NotedLaunch launch = note_launch(std::make_shared<CudaObject>(object), object.launch, words);
  EXPECT_EQ(*launch.image, "code");
  EXPECT_EQ(launch.function, "product");
  EXPECT_EQ(launch.architecture, "sm_90a");
  EXPECT_EQ(launch.shape, object.launch.shape);
  ASSERT_EQ(launch.arguments.size(), 3);
  EXPECT_EQ(std::get<MapArgument>(launch.arguments[0]).address, (SymbolicAddress{Region::weight, 3, 0}));
  EXPECT_EQ(std::get<MapArgument>(launch.arguments[1]).map.argument, -1);
  EXPECT_THAT(std::get<PointerArgument>(launch.arguments[2]).words, ElementsAre(words[0], 0, words[2], 512));
  EXPECT_TRUE(uses_region(launch, Region::input));
  EXPECT_TRUE(uses_region(launch, Region::weight));
  EXPECT_FALSE(uses_region(launch, Region::output));
}

TEST(CudaNotedLaunch, LibrariesKeepAllArguments) {
  const auto product = std::make_shared<CudaObject>();
  product->launch.library = LibraryMatmul{{}, 3};
  const std::vector<std::uint64_t> words = {encode_address({Region::input, 0, 0}),
                                            encode_address({Region::arena, 0, 512})};
  const NotedLaunch launch = note_launch(product, product->launch, words);
  EXPECT_EQ(*launch.library, product->launch.library);
  EXPECT_EQ(std::get<PointerArgument>(launch.arguments.at(0)).words, words);
  EXPECT_TRUE(uses_region(launch, Region::input));
}

TEST(CudaNotedLaunch, RefusesArgumentsThatAreNot) {
  const auto object = std::make_shared<CudaObject>();
  object->launch.pointers = {2};
  const std::vector<std::uint64_t> words(2, encode_address({Region::input, 0, 0}));
  EXPECT_THROW((void)note_launch(object, object->launch, words), IoError);
  object->launch.pointers.clear();
  object->launch.maps.resize(1);
  object->launch.maps[0].argument = 2;
  EXPECT_THROW((void)note_launch(object, object->launch, words), IoError);
}

/// Modules are loaded once per image, so equal ones must be one and different ones never the same.
TEST(CudaLaunchRecorder, KnowsImagesByTheirText) {
  LaunchRecorder recorder;
  std::string text = "first";
  const Image first = recorder.image_of(text);
  text = "other";  // at the same address
  const Image other = recorder.image_of(text);
  EXPECT_EQ(*first, "first");
  EXPECT_EQ(*other, "other");
  EXPECT_EQ(recorder.image_of("first"), first);
}

TEST(CudaScratchPlaces, AreUsedAgain) {
  ScratchPlaces places;
  const std::uint64_t first = places.take(1000);
  const std::uint64_t second = places.take(10);
  EXPECT_NE(first, second);
  EXPECT_EQ(places.size(), 1024 + 256);
  places.give_back(first);
  EXPECT_EQ(places.take(600), first);
  EXPECT_NE(places.take(1), second);
  EXPECT_EQ(places.size(), 1024 + 256 + 256);
}

}  // namespace
}  // namespace sylvite::cuda::noted_launch_test
