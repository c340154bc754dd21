#include "lowering/plan/one_line.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sylvite/graph_text.h"

namespace sylvite {
namespace {

using testing::HasSubstr;

/// A convolution of an image, and operations with its result and two inputs more.
Kernel kernel_of(const std::string& operations, const std::string& beside = "1,32,1,1") {
  const std::string text = "graph kernel(%in0: f32[2,16,6,5]@c16, %in1: f32[32,16,1,1], %in2: f32[" + beside +
                           "], %in3: f32[2,32,6,5]@c16) {\n"
                           "  %v0: f32[2,32,6,5]@c16 = conv(%in0, %in1) {dilations=[1,1], groups=1, "
                           "pads=[0,0,0,0], strides=[1,1]}\n" +
                           operations + "}\nweights: in1 in2\n";
  return parse_kernel(text);
}

TEST(OneLine, IsOfWorkThatLooksAtPixelsApart) {
  const Kernel kernel = kernel_of(
      "  %v1: f32[2,32,6,5]@c16 = add(%v0, %in2)\n"
      "  %v2: f32[2,32,6,5]@c16 = add(%v1, %in3)\n"
      "  return %v2\n");
  const std::optional<Kernel> line = as_one_line(kernel);
  ASSERT_TRUE(line);
  EXPECT_THAT(line->text, HasSubstr("%in0: f32[2,16,1,30]@c16, %in1: f32[32,16,1,1], %in2: f32[1,32,1,1], "
                                    "%in3: f32[2,32,1,30]@c16"));
  EXPECT_THAT(line->text, HasSubstr("%v2: f32[2,32,1,30]@c16 = add"));
  EXPECT_EQ(parse_kernel(line->text).text, line->text);
  EXPECT_EQ(line->input_is_weight, kernel.input_is_weight);
  EXPECT_FALSE(as_one_line(*line)) << "it is one";
}

TEST(OneLine, IsNotOfWorkThatKnowsWhereAPixelIs) {
  const std::string sum = "  %v1: f32[2,32,6,5]@c16 = add(%v0, %in2)\n  return %v1\n";
  EXPECT_TRUE(as_one_line(kernel_of(sum)));
  EXPECT_FALSE(as_one_line(kernel_of(sum, "1,1,1,5"))) << "a number for each column";
  EXPECT_FALSE(as_one_line(kernel_of("  %v1: f32[2,32,1,1] = reduce_sum(%v0) {axes=[2,3]}\n  return %v1\n")));
}

TEST(OneLine, TakesANumberForEachChannel) {
  const auto kernel = [](const char* operations) {
    return parse_kernel(fmt::format(
        "graph kernel(%in0: f32[1,16,6,32]@c16, %in1: f32[32,16,1,1], %in2: f32[32]) {{\n"
        "  %v0: f32[1,32,6,32]@c16 = conv(%in0, %in1, %in2) {{dilations=[1,1], groups=1, pads=[0,0,0,0], "
        "strides=[1,1]}}\n{}}}\nweights: in1 in2\n",
        operations));
  };
  EXPECT_TRUE(as_one_line(kernel("  return %v0\n")));
  EXPECT_FALSE(as_one_line(kernel("  %v1: f32[1,32,6,32]@c16 = add(%v0, %in2)\n  return %v1\n")))
      << "there it is a number for each column";
}

TEST(OneLine, TypesOfItLieAlike) {
  const TensorType image = make_type(DType::f32, {2, 16, 6, 5}), line = make_type(DType::f32, {2, 16, 1, 30});
  EXPECT_TRUE(is_one_line_of(line, image));
  EXPECT_FALSE(is_one_line_of(image, line));
  EXPECT_FALSE(is_one_line_of(make_type(DType::f16, {2, 16, 1, 30}), image));
  EXPECT_FALSE(is_one_line_of(make_type(DType::f32, {2, 16, 1, 29}), image));
}

}  // namespace
}  // namespace sylvite
