#include "lowering/plan/merged_axes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sylvite/graph_text.h"

namespace sylvite::merged_axes_test {
namespace {

using testing::HasSubstr;

bool has_merged(const Kernel& kernel) {
  return with_merged_axes(kernel).body.type(kernel.body.inputs[0]) != kernel.body.type(kernel.body.inputs[0]);
}

/// A convolution of an image, and operations with its result and two inputs more.
Kernel kernel_of(const std::string& operations, const std::string& beside = "1,32,1,1") {
  const std::string text = "graph kernel(%in0: f32[2,16,6,5]@c16, %in1: f32[32,16,1,1], %in2: f32[" + beside +
                           "], %in3: f32[2,32,6,5]@c16) {\n"
                           "  %v0: f32[2,32,6,5]@c16 = conv(%in0, %in1) {dilations=[1,1], groups=1, "
                           "pads=[0,0,0,0], strides=[1,1]}\n" +
                           operations + "}\nweights: in1 in2\n";
  return parse_kernel(text);
}

TEST(MergedAxes, PixelsThatAreLookedAtApartAreOneLine) {
  const Kernel kernel = kernel_of(
      "  %v1: f32[2,32,6,5]@c16 = add(%v0, %in2)\n"
      "  %v2: f32[2,32,6,5]@c16 = add(%v1, %in3)\n"
      "  return %v2\n");
  const Kernel line = with_merged_axes(kernel);
  EXPECT_THAT(line.text, HasSubstr("%in0: f32[1,16,1,60]@c16, %in1: f32[32,16,1,1], %in2: f32[1,32,1,1], "
                                   "%in3: f32[1,32,1,60]@c16"));
  EXPECT_THAT(line.text, HasSubstr("%v2: f32[1,32,1,60]@c16 = add"));
  EXPECT_EQ(parse_kernel(line.text).text, line.text);
  EXPECT_EQ(line.input_is_weight, kernel.input_is_weight);
  EXPECT_FALSE(has_merged(line)) << "it is one";
}

TEST(MergedAxes, WorkThatKnowsWhereAPixelIsKeepsThem) {
  const std::string sum = "  %v1: f32[2,32,6,5]@c16 = add(%v0, %in2)\n  return %v1\n";
  EXPECT_TRUE(has_merged(kernel_of(sum)));
  EXPECT_THAT(with_merged_axes(kernel_of(sum, "1,1,1,5")).text, HasSubstr("%in0: f32[1,16,12,5]@c16"))
      << "a number for each column: only lines of all images are alike";
  EXPECT_FALSE(has_merged(kernel_of(sum, "1,1,6,5"))) << "a number for each pixel";
  EXPECT_FALSE(has_merged(kernel_of("  %v1: f32[2,32,6,1] = reduce_sum(%v0) {axes=[3]}\n  return %v1\n")));
  EXPECT_TRUE(has_merged(kernel_of("  %v1: f32[2,32,1,1] = reduce_sum(%v0) {axes=[2,3]}\n  return %v1\n")));
}

TEST(MergedAxes, TakesANumberForEachChannel) {
  const auto kernel = [](const char* operations) {
    return parse_kernel(fmt::format(
        "graph kernel(%in0: f32[1,16,6,32]@c16, %in1: f32[32,16,1,1], %in2: f32[32]) {{\n"
        "  %v0: f32[1,32,6,32]@c16 = conv(%in0, %in1, %in2) {{dilations=[1,1], groups=1, pads=[0,0,0,0], "
        "strides=[1,1]}}\n{}}}\nweights: in1 in2\n",
        operations));
  };
  EXPECT_TRUE(has_merged(kernel("  return %v0\n")));
  EXPECT_FALSE(has_merged(kernel("  %v1: f32[1,32,6,32]@c16 = add(%v0, %in2)\n  return %v1\n")))
      << "there it is a number for each column";
}

struct Merged {
  const char* name;
  const char* kernel;  ///< a graph of one or more operations
  const char* has;     ///< part of its text when merged; nullptr: it stays
};

class MergedKernels : public testing::TestWithParam<Merged> {};

TEST_P(MergedKernels, HaveTheExpectedTypes) {
  const Kernel kernel = parse_kernel(std::string("graph kernel(") + GetParam().kernel + "}\nweights:\n");
  const Kernel merged = with_merged_axes(kernel);
  if (GetParam().has == nullptr)
    EXPECT_EQ(merged.text, kernel.text);
  else
    EXPECT_THAT(merged.text, HasSubstr(GetParam().has));
  for (std::size_t i = 0; i < kernel.body.inputs.size(); ++i)
    EXPECT_TRUE(
        is_merged_of(merged.body.type(merged.body.inputs[i]), kernel.body.type(kernel.body.inputs[i])));
}

const Merged kernels[] = {
    {"rows_of_a_norm",
     "%in0: f32[2,3,4,8], %in1: f32[8]) {\n  %v0: f32[2,3,4,8] = layer_norm(%in0, %in1) {axis=3, "
     "epsilon=0.00001}\n  return %v0\n",
     "%in0: f32[1,1,24,8]"},
    {"what_a_norm_is_over", "%in0: f32[2,3,8]) {\n  %v0: f32[2,3,8] = softmax(%in0) {axis=0}\n  return %v0\n",
     nullptr},
    {"axes_that_move_together",
     "%in0: f32[2,6,5,16]) {\n  %v0: f32[2,16,6,5] = transpose(%in0) {perm=[0,3,1,2]}\n  return %v0\n",
     "%v0: f32[2,16,1,30] = transpose"},
    {"axes_that_change_places",
     "%in0: f32[2,6,5]) {\n  %v0: f32[5,6,2] = transpose(%in0) {perm=[2,1,0]}\n  return %v0\n", nullptr},
    {"numbers_of_rows",
     "%in0: f32[2,6,5], %in1: f32[2,6,1]) {\n  %v0: f32[2,6,5] = mul(%in0, %in1)\n  return %v0\n",
     "%in1: f32[1,12,1]"},
    {"numbers_of_columns",
     "%in0: f32[2,6,5], %in1: f32[5]) {\n  %v0: f32[2,6,5] = mul(%in0, %in1)\n  return %v0\n",
     "%in0: f32[1,12,5]"},
    {"numbers_of_rows_behind_an_axis_of_one",
     "%in0: f32[2,1,13,7], %in1: f32[2,1,1,7]) {\n  %v0: f32[2,1,13,7] = mul(%in0, %in1)\n  return %v0\n",
     "%in0: f32[1,2,13,7], %in1: f32[1,2,1,7]"},
    {"numbers_of_columns_behind_an_axis_of_one",
     "%in0: f32[5,1,7], %in1: f32[1,1,7]) {\n  %v0: f32[5,1,7] = mul(%in0, %in1)\n  return %v0\n",
     "%in0: f32[1,5,7], %in1: f32[1,1,7]"},
    {"masks_of_batches_and_of_rows",
     "%in0: bool[1,1,6,6], %in1: bool[3,1,1,6]) {\n  %v0: bool[3,1,6,6] = logical_and(%in0, %in1)\n  return "
     "%v0\n",
     "%in0: bool[1,1,6,6], %in1: bool[1,3,1,6]"},
    {"numbers_of_every_second_axis",
     "%in0: f32[2,6,5], %in1: f32[2,1,5]) {\n  %v0: f32[2,6,5] = mul(%in0, %in1)\n  return %v0\n", nullptr},
    {"images_of_blocks",
     "%in0: f32[2,32,6,5]@c16, %in1: f32[1,32,1,1]@c16) {\n  %v0: f32[2,32,6,5]@c16 = mul(%in0, %in1)\n"
     "  return %v0\n",
     "%in0: f32[1,32,1,60]@c16, %in1: f32[1,32,1,1]@c16"},
    {"numbers_of_each_image",
     "%in0: f32[2,32,6,5]@c16, %in1: f32[2,32,1,1]@c16) {\n  %v0: f32[2,32,6,5]@c16 = mul(%in0, %in1)\n"
     "  return %v0\n",
     "%in0: f32[2,32,1,30]@c16, %in1: f32[2,32,1,1]@c16"},
    {"sums_of_images",
     "%in0: f32[2,32,6,5]@c16) {\n  %v0: f32[2,32,1,1]@c16 = reduce_sum(%in0) {axes=[2,3], keepdims=1}\n"
     "  return %v0\n",
     "%in0: f32[2,32,1,30]@c16"},
    {"folds_that_drop_the_outermost_axis",
     "%in0: f32[2,6,5,4]) {\n  %v0: f32[6,5,4] = reduce_sum(%in0) {axes=[0], keepdims=0}\n"
     "  %v1: f32[6,5,4] = exp(%v0)\n  return %v1\n",
     "%in0: f32[2,1,1,120]) {\n  %v0: f32[1,1,120] = reduce_sum"},
    {"folds_that_drop_an_axis_between",
     "%in0: f32[2,3,6,5]) {\n  %v0: f32[2,6,5] = reduce_max(%in0) {axes=[1], keepdims=0}\n"
     "  %v1: f32[2,6,5] = exp(%v0)\n  return %v1\n",
     "%in0: f32[2,3,1,30]) {\n  %v0: f32[2,1,30] = reduce_max"},
    {"single_pixels_of_images",
     "%in0: f32[2,32,1,1]@c16) {\n  %v0: f32[2,32,1,1]@c16 = neg(%in0)\n  return %v0\n", nullptr},
    {"blocks_from_planes",
     "%in0: f32[2,32,6,5]) {\n  %v0: f32[2,32,6,5]@c16 = to_layout(%in0) {block=16}\n  return %v0\n",
     "%in0: f32[2,32,1,30]"},
    {"one_reader_that_tells_them_apart",
     "%in0: f32[2,6,5]) {\n  %v0: f32[2,6,5] = neg(%in0)\n  %v1: f32[2,1,5] = reduce_sum(%v0) {axes=[1]}\n"
     "  return %v1\n",
     nullptr},
    {"pixels_of_shuffled_channels",
     "%in0: f32[2,8,6,5], %in1: f32[2,4,6,5]) {\n  %v0: f32[2,4,6,5] = slice(%in0) {sizes=[2,4,6,5], "
     "starts=[0,4,0,0], steps=[1,1,1,1]}\n  %v1: f32[2,8,6,5] = concat(%v0, %in1) {axis=1}\n"
     "  %v2: f32[2,2,4,6,5] = reshape(%v1) {shape=[2,2,4,6,5]}\n"
     "  %v3: f32[2,4,2,6,5] = transpose(%v2) {perm=[0,2,1,3,4]}\n"
     "  %v4: f32[2,8,6,5] = reshape(%v3) {shape=[2,8,6,5]}\n  return %v4\n",
     "%v0: f32[2,4,1,30] = slice(%in0) {sizes=[2,4,1,30], starts=[0,4,0,0], steps=[1,1,1,1]}\n"
     "  %v1: f32[2,8,1,30] = concat(%v0, %in1) {axis=1}\n"
     "  %v2: f32[2,2,4,1,30] = reshape(%v1) {shape=[2,2,4,1,30]}"},
    {"axes_that_a_reshape_mixes",
     "%in0: f32[2,6,5]) {\n  %v0: f32[2,6,5] = neg(%in0)\n  %v1: f32[3,4,5] = reshape(%v0) {shape=[3,4,5]}\n"
     "  return %v1\n",
     nullptr},
    {"the_axis_of_a_concat",
     "%in0: f32[2,6,5], %in1: f32[2,3,5]) {\n  %v0: f32[2,9,5] = concat(%in0, %in1) {axis=1}\n  return %v0\n",
     nullptr},
    {"parts",
     "%in0: f32[2,6,5]) {\n  %v0: f32[2,6,2] = slice(%in0) {sizes=[2,6,2], starts=[0,0,1], "
     "steps=[1,1,1]}\n  return %v0\n",
     "%in0: f32[1,12,5]"},
    {"every_second_row",
     "%in0: f32[2,6,5]) {\n  %v0: f32[2,3,5] = slice(%in0) {sizes=[2,3,5], starts=[0,0,0], steps=[1,2,1]}\n"
     "  return %v0\n",
     nullptr},
};

INSTANTIATE_TEST_SUITE_P(Kernels, MergedKernels, testing::ValuesIn(kernels),
                         [](const auto& test) { return test.param.name; });

TEST(MergedAxes, TypesOfThemLieAlike) {
  const TensorType image = make_type(DType::f32, {2, 16, 6, 5}), line = make_type(DType::f32, {2, 16, 1, 30});
  EXPECT_TRUE(is_merged_of(line, image));
  EXPECT_TRUE(is_merged_of(make_type(DType::f32, {1, 1, 1, 960}), image));
  EXPECT_TRUE(is_merged_of(make_type(DType::f32, {1, 32, 1, 30}), image));
  EXPECT_FALSE(is_merged_of(image, line));
  EXPECT_FALSE(is_merged_of(make_type(DType::f16, {2, 16, 1, 30}), image));
  EXPECT_FALSE(is_merged_of(make_type(DType::f32, {2, 16, 1, 29}), image));
  EXPECT_FALSE(is_merged_of(make_type(DType::f32, {16, 2, 1, 30}), image));
  TensorType blocks = image, moved = make_type(DType::f32, {1, 32, 6, 5});
  blocks.layout.channel_block = moved.layout.channel_block = 16;
  EXPECT_FALSE(is_merged_of(moved, blocks));
  TensorType pixels = make_type(DType::f32, {1, 16, 1, 60});
  pixels.layout.channel_block = 16;
  EXPECT_TRUE(is_merged_of(pixels, blocks));
  TensorType rows = make_type(DType::f32, {60, 16, 1, 1});
  rows.layout.channel_block = 8;
  pixels.layout.channel_block = 8;
  EXPECT_FALSE(is_merged_of(pixels, rows));
}

}  // namespace
}  // namespace sylvite::merged_axes_test
