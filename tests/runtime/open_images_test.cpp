// Open kernels over images: the spaces that are for them, compiled once, at many sizes, against the interpreter.

#include "tests/support/open_cases.h"

namespace sylvite::open_images_test {
namespace {

class OpenImages : public testing::TestWithParam<OpenCase> {};

/// By the spaces that are for them: generic ones have the cases of open_kernels_test.cpp.
TEST_P(OpenImages, AgreeAtAllSizes) {
  expect_agreement(GetParam(), 2);
}

/// Of images of s0 x s1.
const std::vector<SymbolValues> images = {
    {{"s0", 16}, {"s1", 16}}, {{"s0", 17}, {"s1", 21}}, {{"s0", 20}, {"s1", 29}}, {{"s0", 30}, {"s1", 18}}};

/// The same, and what a stride of 2 makes of them.
const std::vector<SymbolValues> halved_images = {
    {{"s0", 16}, {"s1", 16}, {"s2", 8}, {"s3", 8}},
    {{"s0", 17}, {"s1", 21}, {"s2", 9}, {"s3", 11}},
    {{"s0", 20}, {"s1", 29}, {"s2", 10}, {"s3", 15}},
    {{"s0", 30}, {"s1", 18}, {"s2", 15}, {"s3", 9}},
};

/// Kernels over images whose lines and pixels are open.
std::vector<OpenCase> image_cases() {
  const std::string open = " where {s0: 16..@28, s1: 16..@24} {\n";
  const std::string halved = " where {s0: 16..@28, s1: 16..@24, s2: 8..15@14, s3: 8..15@12} {\n";
  const std::string plain = "{dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}";
  const std::string strided = "{dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[2,2]}";
  return {
      {"convolution_of_images",
       "graph kernel(%in0: f32[2,32,s0,s1]@c16, %in1: f32[48,32,3,3], %in2: f32[48], %in3: "
       "f32[2,48,s0,s1]@c16)" +
           open + "  %v0: f32[2,48,s0,s1]@c16 = conv(%in0, %in1, %in2) " + plain +
           "\n  %v1: f32[2,48,s0,s1]@c16 = add(%v0, %in3)\n  %v2: f32[2,48,s0,s1]@c16 = relu(%v1)\n  return "
           "%v2\n}\n",
       " in1 in2", images},
      {"convolution_of_small_images",
       "graph kernel(%in0: f32[s0,32,s1,s2]@c16, %in1: f32[32,32,3,3]) where {s0: 2..15@3, s1: 4..15@7, "
       "s2: 4..7@5} {\n"
       "  %v0: f32[s0,32,s1,s2]@c16 = conv(%in0, %in1) " +
           plain + "\n  return %v0\n}\n",
       " in1",
       {{{"s0", 2}, {"s1", 4}, {"s2", 4}},
        {{"s0", 3}, {"s1", 13}, {"s2", 6}},
        {{"s0", 4}, {"s1", 5}, {"s2", 7}}}},
      {"convolution_of_a_batch_of_images",
       "graph kernel(%in0: f32[s0,32,s1,s2]@c16, %in1: f32[48,32,3,3], %in2: f32[s0,48,s1,s2]@c16) where "
       "{s0: 2..15@3, s1: 16..@28, "
       "s2: 16..@24} {\n"
       "  %v0: f32[s0,48,s1,s2]@c16 = conv(%in0, %in1) " +
           plain + "\n  %v1: f32[s0,48,s1,s2]@c16 = add(%v0, %in2)\n  return %v1\n}\n",
       " in1",
       {{{"s0", 2}, {"s1", 16}, {"s2", 16}},
        {{"s0", 5}, {"s1", 17}, {"s2", 21}},
        {{"s0", 3}, {"s1", 30}, {"s2", 18}}}},
      {"convolution_of_one_small_image",
       "graph kernel(%in0: f32[1,32,s0,s1]@c16, %in1: f32[32,32,3,3]) where {s0: 4..15@7, s1: 4..7@5} {\n"
       "  %v0: f32[1,32,s0,s1]@c16 = conv(%in0, %in1) " +
           plain + "\n  return %v0\n}\n",
       " in1",
       {{{"s0", 4}, {"s1", 4}}, {{"s0", 13}, {"s1", 6}}, {{"s0", 5}, {"s1", 7}}}},
      {"convolution_of_tiny_images",
       "graph kernel(%in0: f32[1,32,s0,s1]@c16, %in1: f32[32,32,3,3]) where {s0: 2..3@2, s1: 2..3@3} {\n"
       "  %v0: f32[1,32,s0,s1]@c16 = conv(%in0, %in1) " +
           plain + "\n  return %v0\n}\n",
       " in1",
       {{{"s0", 2}, {"s1", 2}}, {{"s0", 3}, {"s1", 2}}, {{"s0", 2}, {"s1", 3}}}},
      {"convolution_of_one_line",
       "graph kernel(%in0: f32[s0,32,1,s1]@c16, %in1: f32[48,32,1,1], %in2: f32[s0,48,1,s1]@c16) "
       "where {s0: 1.., s1: 16..@49} {\n"
       "  %v0: f32[s0,48,1,s1]@c16 = conv(%in0, %in1) {dilations=[1,1], groups=1, pads=[0,0,0,0], "
       "strides=[1,1]}\n"
       "  %v1: f32[s0,48,1,s1]@c16 = add(%v0, %in2)\n"
       "  return %v1\n}\n",
       " in1",
       {{{"s0", 1}, {"s1", 16}},
        {{"s0", 3}, {"s1", 17}},
        {{"s0", 2}, {"s1", 100}},
        {{"s0", 1}, {"s1", 785}}}},
      {"strided_convolution_of_images",
       "graph kernel(%in0: f32[1,32,s0,s1]@c16, %in1: f32[48,32,3,3])" + halved +
           "  %v0: f32[1,48,s2,s3]@c16 = conv(%in0, %in1) " + strided + "\n  return %v0\n}\n",
       " in1", halved_images},
      {"first_convolution_of_images",
       "graph kernel(%in0: f32[1,3,s0,s1], %in1: f32[32,3,3,3], %in2: f32[32])" + halved +
           "  %v0: f32[1,32,s2,s3]@c16 = conv(%in0, %in1, %in2) " + strided + "\n  return %v0\n}\n",
       " in1 in2", halved_images},
      {"convolution_without_borders",
       "graph kernel(%in0: f32[1,32,s0,s1]@c16, %in1: f32[32,32,3,3]) where {s0: 16..@28, s1: 16..@24, s2: "
       "8..@26, s3: "
       "8..@22} {\n"
       "  %v0: f32[1,32,s2,s3]@c16 = conv(%in0, %in1) {dilations=[1,1], groups=1, pads=[0,0,0,0], "
       "strides=[1,1]}\n"
       "  return %v0\n}\n",
       " in1",
       {{{"s0", 16}, {"s1", 17}, {"s2", 14}, {"s3", 15}}, {{"s0", 21}, {"s1", 30}, {"s2", 19}, {"s3", 28}}}},
      {"points_of_images",
       "graph kernel(%in0: f32[1,32,s0,s1]@c16, %in1: f32[48,32,1,1])" + halved +
           "  %v0: f32[1,48,s2,s3]@c16 = conv(%in0, %in1) {dilations=[1,1], groups=1, pads=[0,0,0,0], "
           "strides=[2,2]}\n"
           "  return %v0\n}\n",
       " in1", halved_images},
      {"groups_of_images",
       "graph kernel(%in0: f32[1,64,s0,s1]@c16, %in1: f32[64,16,3,3])" + open +
           "  %v0: f32[1,64,s0,s1]@c16 = conv(%in0, %in1) {dilations=[1,1], groups=4, pads=[1,1,1,1], "
           "strides=[1,1]}\n"
           "  return %v0\n}\n",
       " in1", images},
      {"groups_of_dense_pixels",
       "graph kernel(%in0: f32[2,8,s0,s1], %in1: f32[8,4,1,1]) where {s0: 2..@8, s1: 2..@9} {\n"
       "  %v0: f32[2,8,s0,s1] = conv(%in0, %in1) {dilations=[1,1], groups=2, pads=[0,0,0,0], "
       "strides=[1,1]}\n"
       "  return %v0\n}\n",
       " in1",
       {{{"s0", 8}, {"s1", 9}}, {{"s0", 4}, {"s1", 4}}, {{"s0", 17}, {"s1", 33}}}},
      {"groups_of_dense_images_and_a_line",
       "graph kernel(%in0: f32[1,8,1,s1], %in1: f32[2,8,s0,s1], %in2: f32[8,4,3,3]) where "
       "{s0: 2..@14, s1: 2..@14} {\n"
       "  %v0: f32[2,8,s0,s1] = conv(%in1, %in2) {dilations=[1,1], groups=2, pads=[1,1,1,1], "
       "strides=[1,1]}\n"
       "  %v1: f32[2,8,s0,s1] = sub(%in0, %v0)\n  return %v1\n}\n",
       " in2",
       {{{"s0", 14}, {"s1", 14}}, {{"s0", 5}, {"s1", 3}}, {{"s0", 17}, {"s1", 21}}, {{"s0", 9}, {"s1", 32}}}},
      {"groups_of_dense_images",
       "graph kernel(%in0: f32[s0,16,s1,s2], %in1: f32[16,8,3,3]) where {s0: 1..@2, s1: 2..@14, s2: 2..@14} "
       "{\n"
       "  %v0: f32[s0,16,s1,s2] = conv(%in0, %in1) {dilations=[1,1], groups=2, pads=[1,1,1,1], "
       "strides=[1,1]}\n"
       "  return %v0\n}\n",
       " in1",
       {{{"s0", 1}, {"s1", 2}, {"s2", 2}},
        {{"s0", 2}, {"s1", 3}, {"s2", 7}},
        {{"s0", 1}, {"s1", 14}, {"s2", 14}},
        {{"s0", 3}, {"s1", 5}, {"s2", 16}},
        {{"s0", 1}, {"s1", 9}, {"s2", 37}}}},
      {"depthwise_of_images",
       "graph kernel(%in0: f32[1,32,s0,s1]@c16, %in1: f32[32,1,5,5])" + halved +
           "  %v0: f32[1,32,s2,s3]@c16 = conv(%in0, %in1) {dilations=[1,1], groups=32, pads=[2,2,2,2], "
           "strides=[2,2]}\n"
           "  return %v0\n}\n",
       " in1", halved_images},
      {"rows_of_images",
       "graph kernel(%in0: f32[1,32,s0,s1]@c16, %in1: f32[48,32,1,1], %in2: f32[48], %in3: f32[48,1,3,3])" +
           halved +
           "  %c0 = constant f32[] {0.5}\n"
           "  %v0: f32[1,48,s0,s1]@c16 = conv(%in0, %in1, %in2) {dilations=[1,1], groups=1, pads=[0,0,0,0], "
           "strides=[1,1]}\n"
           "  %v1: f32[1,48,s0,s1]@c16 = add(%v0, %c0)\n  %v2: f32[1,48,s0,s1]@c16 = relu(%v1)\n"
           "  %v3: f32[1,48,s2,s3]@c16 = conv(%v2, %in3) {dilations=[1,1], groups=48, pads=[1,1,1,1], "
           "strides=[2,2]}\n"
           "  return %v3\n}\n",
       " in1 in2 in3", halved_images},
      {"pooling_of_images",
       "graph kernel(%in0: f32[1,32,s0,s1]@c16)" + halved +
           "  %v0: f32[1,32,s2,s3]@c16 = max_pool(%in0) {dilations=[1,1], kernel=[3,3], pads=[1,1,1,1], "
           "strides=[2,2]}\n"
           "  return %v0\n}\n",
       "", halved_images},
      {"norms_of_planes",
       "graph kernel(%in0: f32[1,32,s0,s1]@c16)" + open +
           "  %v0: f32[1,32,s0,s1] = to_layout(%in0) {block=0}\n"
           "  %v1: f32[1,32,s0,s1] = layer_norm(%v0) {axis=2, epsilon=1e-05}\n"
           "  %v2: f32[1,32,s0,s1] = relu(%v1)\n  return %v2\n}\n",
       "", images},
      {"images_to_planes",
       "graph kernel(%in0: f32[1,32,s0,s1]@c16)" + open +
           "  %v0: f32[1,32,s0,s1] = to_layout(%in0) {block=0}\n  return %v0\n}\n",
       "", images},
  };
}

INSTANTIATE_TEST_SUITE_P(All, OpenImages, testing::ValuesIn(image_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace sylvite::open_images_test
