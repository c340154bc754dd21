#include "lowering/plan/storage_order.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/run_kernel.h"

namespace sylvite::storage_order_test {
namespace {

TEST(StorageOrder, BlocksOfChannelsAreOutermost) {
  TensorType type = make_type(DType::f32, {3, 32, 5, 6});
  EXPECT_FALSE(has_outer_blocks(type));
  EXPECT_EQ(storage_strides(type.storage_dims(), false), dense_strides(type.dims()));
  type.layout.channel_block = 16;
  EXPECT_TRUE(has_outer_blocks(type));
  EXPECT_EQ(storage_strides(type.storage_dims(), true), (Dims{480, 1440, 96, 16, 1}));
  EXPECT_EQ(storage_strides(type.storage_shape(), true).known(), (Dims{480, 1440, 96, 16, 1}));
  type.shape = {3, 16, 5, 6};
  EXPECT_FALSE(has_outer_blocks(type)) << "one block";
  EXPECT_TRUE(has_lined_images(type));
  type.shape = {3, 32, 1, 1};
  EXPECT_FALSE(has_outer_blocks(type)) << "images of one pixel are rows of channels, as dense ones";
  EXPECT_FALSE(has_lined_images(type));
}

TEST(StorageOrder, WeightsInBlocksForEachImage) {
  for (const char* dims : {"2,6,5,3", "1,6,5,3", "2,6,1,1"}) {
    const Kernel kernel =
        kernel_of(fmt::format("graph kernel(%in0: f32[{0}]@c4, %w: f32[{0}]@c4) {{\n"
                              "  %v0: f32[{0}]@c4 = add(%in0, %w)\n  return %v0\n}}\n",
                              dims));
    check_candidate(kernel, {});
  }
}

}  // namespace
}  // namespace sylvite::storage_order_test
