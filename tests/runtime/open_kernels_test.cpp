// Open kernels: every space that takes one, compiled once, at many sizes, against the interpreter.

#include "tests/support/open_cases.h"

namespace sylvite::open_kernels_test {
namespace {

class OpenKernels : public testing::TestWithParam<OpenCase> {};

TEST_P(OpenKernels, AgreeAtAllSizes) {
  expect_agreement(GetParam(), SIZE_MAX);
}

std::vector<SymbolValues> each_of(const std::string& symbol, const std::vector<std::int64_t>& values) {
  std::vector<SymbolValues> sizes;
  sizes.reserve(values.size());
  for (const std::int64_t value : values) sizes.push_back({{symbol, value}});
  return sizes;
}

const std::vector<SymbolValues> batches_and_lengths = {
    {{"s0", 2}, {"s1", 16}}, {{"s0", 3}, {"s1", 17}}, {{"s0", 15}, {"s1", 33}}, {{"s0", 2}, {"s1", 100}}};

std::vector<OpenCase> open_cases() {
  const auto rows = each_of("s0", {16, 17, 40, 77, 300});
  const auto few = each_of("s0", {2, 3, 7, 15});
  return {
      {"matmul",
       "graph kernel(%in0: f32[s0,96], %in1: f32[96,80], %in2: f32[80]) where {s0: 16..@40} {\n"
       "  %v0: f32[s0,80] = matmul(%in0, %in1)\n  %v1: f32[s0,80] = add(%v0, %in2)\n"
       "  %v2: f32[s0,80] = relu(%v1)\n  return %v2\n}\n",
       " in1 in2", rows},
      {"matmul_of_few_rows",
       "graph kernel(%in0: f32[s0,96], %in1: f32[96,80]) where {s0: 2..15@3} {\n"
       "  %v0: f32[s0,80] = matmul(%in0, %in1)\n  return %v0\n}\n",
       " in1", few},
      {"matmul_of_deep_panels",
       "graph kernel(%in0: f32[s0,12544], %in1: f32[12544,80], %in2: f32[80]) where {s0: 16..@40} {\n"
       "  %v0: f32[s0,80] = matmul(%in0, %in1)\n  %v1: f32[s0,80] = add(%v0, %in2)\n"
       "  %v2: f32[s0,80] = relu(%v1)\n  return %v2\n}\n",
       " in1 in2", rows},
      {"matmul_of_few_rows_and_deep_panels",
       "graph kernel(%in0: f32[s0,12544], %in1: f32[12544,40]) where {s0: 2..15@3} {\n"
       "  %v0: f32[s0,40] = matmul(%in0, %in1)\n  return %v0\n}\n",
       " in1", few},
      {"matmul_of_batches",
       "graph kernel(%in0: f32[s0,s1,32], %in1: f32[s0,32,48]) where {s0: 2..15@3, s1: 16..@40} {\n"
       "  %v0: f32[s0,s1,48] = matmul(%in0, %in1)\n  return %v0\n}\n",
       "", batches_and_lengths},
      {"matmul_that_folds_open_depths",
       "graph kernel(%in0: f32[s0,s1,32], %in1: f32[s0,s1,48]) where {s0: 2..15@3, s1: 16..@40} {\n"
       "  %v0: f32[s0,32,s1] = transpose(%in0) {perm=[0,2,1]}\n"
       "  %v1: f32[s0,32,48] = matmul(%v0, %in1)\n  return %v1\n}\n",
       "", batches_and_lengths},
      {"matmul_of_open_columns",
       "graph kernel(%in0: f32[s0,s1,24], %in1: f32[s0,s2,24]) where {s0: 2..15@3, s1: 16..@40, s2: 16..@70} "
       "{\n"
       "  %v0: f32[s0,24,s2] = transpose(%in1) {perm=[0,2,1]}\n"
       "  %v1: f32[s0,s1,s2] = matmul(%in0, %v0)\n  return %v1\n}\n",
       "",
       {{{"s0", 2}, {"s1", 16}, {"s2", 16}},
        {{"s0", 5}, {"s1", 37}, {"s2", 33}},
        {{"s0", 3}, {"s1", 100}, {"s2", 127}}}},
      {"matmul_all_open",
       "graph kernel(%in0: f32[s0,s0], %in1: f32[s0,s0]) where {s0: 16..@48} {\n"
       "  %v0: f32[s0,s0] = matmul(%in0, %in1)\n  return %v0\n}\n",
       "", rows},
      {"matmul_of_few_open_columns",
       "graph kernel(%in0: f32[20,s0], %in1: f32[s0,s1]) where {s0: 16..@40, s1: 2..15@3} {\n"
       "  %v0: f32[20,s1] = matmul(%in0, %in1)\n  return %v0\n}\n",
       "",
       {{{"s0", 16}, {"s1", 2}}, {{"s0", 33}, {"s1", 15}}, {{"s0", 61}, {"s1", 7}}}},
      {"filter_gradient",
       "graph kernel(%in0: f32[s0,40,s1,s2]@c16, %in1: f32[s0,24,s1,s2]@c16) where {s0: 2..@3, s1: 4..@12, "
       "s2: "
       "6..@15} {\n"
       "  %v0: f32[1,9,40,24] = filter_gradient(%in0, %in1) {dilations=[1,1], groups=1, joined=0, "
       "kernel=[3,3], "
       "pads=[1,1,1,1], parts=1, strides=[1,1]}\n  return %v0\n}\n",
       "",
       {{{"s0", 2}, {"s1", 4}, {"s2", 6}},
        {{"s0", 9}, {"s1", 12}, {"s2", 40}},
        {{"s0", 3}, {"s1", 33}, {"s2", 15}}}},
      {"filter_gradient_of_few_channels",
       "graph kernel(%in0: f32[s0,32,s1,s1]@c16, %in1: f32[s0,3,s2,s2]) where {s0: 2..@3, s1: 4..@12, s2: "
       "8..@24} "
       "{\n"
       "  %v0: f32[1,9,32,3] = filter_gradient(%in0, %in1) {dilations=[1,1], groups=1, joined=0, "
       "kernel=[3,3], "
       "pads=[1,1,1,1], parts=1, strides=[2,2]}\n  return %v0\n}\n",
       "",
       {{{"s0", 2}, {"s1", 4}, {"s2", 8}}, {{"s0", 9}, {"s1", 12}, {"s2", 23}}}},
      {"filter_gradient_of_channels_apart",
       "graph kernel(%in0: f32[s0,40,s1,s2]@c16, %in1: f32[s0,40,s1,s2]@c16) where {s0: 2..@3, s1: 4..@12, "
       "s2: "
       "6..@15} {\n"
       "  %v0: f32[1,9,40,1] = filter_gradient(%in0, %in1) {dilations=[1,1], groups=40, joined=0, "
       "kernel=[3,3], "
       "pads=[1,1,1,1], parts=1, strides=[1,1]}\n  return %v0\n}\n",
       "",
       {{{"s0", 2}, {"s1", 4}, {"s2", 6}}, {{"s0", 9}, {"s1", 12}, {"s2", 40}}}},
      {"filter_gradient_of_groups",
       "graph kernel(%in0: f32[s0,40,s1,s2]@c16, %in1: f32[s0,40,s1,s2]@c16) where {s0: 2..@3, s1: 4..@12, "
       "s2: 6..@15} {\n"
       "  %v0: f32[1,9,40,8] = filter_gradient(%in0, %in1) {dilations=[1,1], groups=5, joined=0, "
       "kernel=[3,3], "
       "pads=[1,1,1,1], parts=1, strides=[1,1]}\n  return %v0\n}\n",
       "",
       {{{"s0", 2}, {"s1", 4}, {"s2", 6}}, {{"s0", 9}, {"s1", 12}, {"s2", 40}}}},
      {"filter_gradient_of_groups_across_blocks",
       "graph kernel(%in0: f32[s0,60,s1,s1]@c16, %in1: f32[s0,36,s1,s1]@c16) where {s0: 2..@3, s1: 4..@12} "
       "{\n"
       "  %v0: f32[1,9,60,12] = filter_gradient(%in0, %in1) {dilations=[1,1], groups=3, joined=0, "
       "kernel=[3,3], "
       "pads=[1,1,1,1], parts=1, strides=[1,1]}\n  return %v0\n}\n",
       "",
       {{{"s0", 2}, {"s1", 4}}, {{"s0", 5}, {"s1", 13}}}},
      {"filter_gradient_of_wide_groups",
       "graph kernel(%in0: f32[s0,64,s1,s1]@c16, %in1: f32[s0,96,s1,s1]@c16) where {s0: 2..@3, s1: 4..@12} "
       "{\n"
       "  %v0: f32[1,9,64,48] = filter_gradient(%in0, %in1) {dilations=[1,1], groups=2, joined=0, "
       "kernel=[3,3], "
       "pads=[1,1,1,1], parts=1, strides=[1,1]}\n  return %v0\n}\n",
       "",
       {{{"s0", 2}, {"s1", 4}}, {{"s0", 5}, {"s1", 13}}}},
      {"layer_norm",
       "graph kernel(%in0: f32[s0,s1,72], %in1: f32[72], %in2: f32[72]) where {s0: 2..15@3, s1: 16..@40} {\n"
       "  %v0: f32[s0,s1,72] = layer_norm(%in0, %in1, %in2) {axis=2, epsilon=1e-05}\n  return %v0\n}\n",
       " in1 in2", batches_and_lengths},
      {"layer_norm_of_open_rows",
       "graph kernel(%in0: f32[s0,s1]) where {s0: 2..15@3, s1: 16..@64} {\n"
       "  %v0: f32[s0,s1] = layer_norm(%in0) {axis=1, epsilon=1e-05}\n  return %v0\n}\n",
       "", batches_and_lengths},
      {"rms_norm_of_open_groups",
       "graph kernel(%in0: f32[s0,6,s1], %in1: f32[6,s1]) where {s0: 2..15@3, s1: 16..@64} {\n"
       "  %v0: f32[s0,6,s1] = rms_norm(%in0, %in1) {axis=1, epsilon=1e-05}\n  return %v0\n}\n",
       "", batches_and_lengths},
      {"softmax_of_open_rows",
       "graph kernel(%in0: f32[s0,s1]) where {s0: 2..15@3, s1: 16..@64} {\n"
       "  %v0: f32[s0,s1] = softmax(%in0) {axis=1}\n  return %v0\n}\n",
       "", batches_and_lengths},
      {"sum_of_open_rows",
       "graph kernel(%in0: f32[s0,s1]) where {s0: 2..15@3, s1: 16..@64} {\n"
       "  %v0: f32[s0] = reduce_sum(%in0) {axes=[1], keepdims=0}\n  return %v0\n}\n",
       "", batches_and_lengths},
      {"mean_of_open_rows",
       "graph kernel(%in0: f32[s0,s1]) where {s0: 2..15@3, s1: 16..@64} {\n"
       "  %v0: f32[s0] = reduce_sum(%in0) {axes=[1], keepdims=0}\n"
       "  %c0: f32[] = extents() {dtype=\"f32\", inverse=1, rank=0, values=[s1]}\n"
       "  %v1: f32[s0] = mul(%v0, %c0)\n  return %v1\n}\n",
       "", batches_and_lengths},
      {"inverses_in_16_bits",
       "graph kernel(%in0: f32[s0,8]) where {s0: 16..@20} {\n"
       "  %c0: bf16[] = extents() {dtype=\"bf16\", inverse=1, rank=0, values=[s0]}\n"
       "  %v0: f32[] = cast(%c0) {to=\"f32\"}\n"
       "  %v1: f32[s0,8] = mul(%in0, %v0)\n  return %v1\n}\n",
       "",
       {{{"s0", 20}}, {{"s0", 49}}, {{"s0", 1000}}}},
      {"largest_of_open_columns",
       "graph kernel(%in0: f32[s0,s1,24]) where {s0: 2..15@3, s1: 16..@64} {\n"
       "  %v0: f32[s0,24] = reduce_max(%in0) {axes=[1], keepdims=0}\n  return %v0\n}\n",
       "", batches_and_lengths},
      {"attention",
       "graph kernel(%in0: f32[s0,s1,4,24], %in1: f32[s0,1,s1,s1]) where {s0: 2..15@3, s1: 16..@40} {\n"
       "  %v0: f32[s0,4,s1,24] = transpose(%in0) {perm=[0,2,1,3]}\n"
       "  %v1: f32[s0,4,s1,24] = attention(%v0, %v0, %v0, %in1) {causal=0, scale=0.2, softcap=0.0}\n"
       "  %v2: f32[s0,s1,4,24] = transpose(%v1) {perm=[0,2,1,3]}\n  return %v2\n}\n",
       "", batches_and_lengths},
      {"attention_of_windows",
       "graph kernel(%in0: f32[s1,3,s0,20,24]) where {s0: 1..@9, s1: 1..@2} {\n"
       "  %v0: f32[s1,3,s0,20,24] = attention(%in0, %in0, %in0) {causal=0, scale=0.2, softcap=0.0}\n"
       "  return %v0\n}\n",
       "",
       {{{"s0", 9}, {"s1", 2}}, {{"s0", 1}, {"s1", 5}}, {{"s0", 12}, {"s1", 3}}}},
      {"causal_attention",
       "graph kernel(%in0: f32[2,s0,24]) where {s0: 16..@40} {\n"
       "  %v0: f32[2,s0,24] = attention(%in0, %in0, %in0) {causal=1, scale=0.2, softcap=0.0}\n  return "
       "%v0\n}\n",
       "", rows},
      {"attention_over_few",
       "graph kernel(%in0: f32[2,20,24], %in1: f32[2,s0,24]) where {s0: 2..15@3} {\n"
       "  %v0: f32[2,20,24] = attention(%in0, %in1, %in1) {causal=0, scale=0.2, softcap=0.0}\n  return "
       "%v0\n}\n",
       "", few},
      {"attention_across_channels",
       "graph kernel(%in0: f32[s0,4,12,s1], %in1: f32[s0,s1,4,12]) where {s0: 1..@3, s1: 16..@40} {\n"
       "  %v0: f32[s0,4,12,s1] = transpose(%in1) {perm=[0,2,3,1]}\n"
       "  %v1: f32[s0,4,12,s1] = attention(%in0, %in0, %v0) {causal=0, scale=0.0, softcap=0.0}\n"
       "  return %v1\n}\n",
       "", batches_and_lengths},
      {"attention_across_channels_of_few",
       "graph kernel(%in0: f32[2,20,s0], %in1: f32[2,42,s0]) where {s0: 2..15@3} {\n"
       "  %v0: f32[2,20,s0] = attention(%in0, %in1, %in1) {causal=0, scale=0.0, softcap=0.0}\n  return "
       "%v0\n}\n",
       "", few},
      {"attention_of_a_row",
       "graph kernel(%in0: f32[s0,4,1,32], %in1: f32[s0,s1,4,32]) where {s0: 2..15@3, s1: 16..@200} {\n"
       "  %v0: f32[s0,4,s1,32] = transpose(%in1) {perm=[0,2,1,3]}\n"
       "  %v1: f32[s0,4,1,32] = attention(%in0, %v0, %v0) {causal=0, scale=0.2, softcap=0.0}\n"
       "  return %v1\n}\n",
       "", batches_and_lengths},
      {"masked_attention_of_few_rows",
       "graph kernel(%in0: f32[s0,4,3,32], %in1: f32[s0,4,s1,32], %in2: f32[s0,1,1,s1]) "
       "where {s0: 2..15@3, s1: 16..@200} {\n"
       "  %v0: f32[s0,4,3,32] = attention(%in0, %in1, %in1, %in2) {causal=0, scale=0.2, softcap=0.0}\n"
       "  return %v0\n}\n",
       "", batches_and_lengths},
      {"elementwise_with_broadcasts",
       "graph kernel(%in0: f32[s0,1,s1,s1], %in1: f32[s0,3,1,s1]) where {s0: 2..15@3, s1: 16..@40} {\n"
       "  %v0: f32[s0,3,s1,s1] = add(%in0, %in1)\n  return %v0\n}\n",
       "", batches_and_lengths},
      {"rows_from_one_on",
       "graph kernel(%in0: f32[s0,s1,s2], %in1: f32[s0,s1,1]) where {s0: 1..@3, s1: 1..@5, s2: 16..@40} {\n"
       "  %v0: f32[s0,s1,s2] = mul(%in0, %in1)\n  return %v0\n}\n",
       "",
       {{{"s0", 1}, {"s1", 1}, {"s2", 16}},
        {{"s0", 2}, {"s1", 1}, {"s2", 333}},
        {{"s0", 1}, {"s1", 20}, {"s2", 17}}}},
      {"transpose",
       "graph kernel(%in0: f32[s0,s1,6,10]) where {s0: 2..15@3, s1: 16..@40} {\n"
       "  %v0: f32[s0,6,s1,10] = transpose(%in0) {perm=[0,2,1,3]}\n  return %v0\n}\n",
       "", batches_and_lengths},
      {"merged_rows",
       "graph kernel(%in0: f32[s0,s1,12], %in1: f32[s2,12]) where {s0: 2..15@3, s1: 16..@40, s2: 16..@120} "
       "{\n"
       "  %v0: f32[s2,12] = reshape(%in0) {shape=[s2,12]}\n  %v1: f32[s2,12] = mul(%v0, %in1)\n  return "
       "%v1\n}\n",
       "",
       {{{"s0", 2}, {"s1", 16}, {"s2", 32}}, {{"s0", 7}, {"s1", 19}, {"s2", 133}}}},
      {"concat_and_slice",
       "graph kernel(%in0: f32[s0,s1,12], %in1: f32[s0,s2,12]) where {s0: 2..15@3, s1: 16..@40, s2: 16..@50, "
       "s3: 16..@90, s4: 16..@50} {\n"
       "  %v0: f32[s0,s3,12] = concat(%in0, %in1) {axis=1}\n"
       "  %v1: f32[s0,s4,12] = slice(%v0) {sizes=[s0,s4,12], starts=[0,s1,0], steps=[1,1,1]}\n"
       "  return %v1\n}\n",
       "",
       {{{"s0", 2}, {"s1", 16}, {"s2", 17}, {"s3", 33}, {"s4", 16}},
        {{"s0", 5}, {"s1", 20}, {"s2", 40}, {"s3", 60}, {"s4", 33}}}},
      {"gather",
       "graph kernel(%in0: f32[30,20], %in1: i64[s0,s1]) where {s0: 2..15@3, s1: 16..@40} {\n"
       "  %v0: f32[s0,s1,20] = gather(%in0, %in1) {axis=0}\n  return %v0\n}\n",
       " in0", batches_and_lengths},
      {"pad",
       "graph kernel(%in0: f32[s0,s1]) where {s0: 2..15@3, s1: 16..@40, s2: 16..@43} {\n"
       "  %v0: f32[s0,s2] = pad(%in0) {high=[0,1], interior=[], low=[0,2], mode=\"reflect\"}\n  return "
       "%v0\n}\n",
       "",
       {{{"s0", 2}, {"s1", 16}, {"s2", 19}}, {{"s0", 5}, {"s1", 33}, {"s2", 36}}}},
      {"pad_by_open_amounts",
       "graph kernel(%in0: f32[s0,24]) where {s0: 16..@20, s1: 16..@23, s2: 0..@1, s3: 0..@2} {\n"
       "  %v0: f32[s1,24] = pad(%in0) {high=[s3,0], interior=[], low=[s2,0], mode=\"constant\"}\n"
       "  %v1: f32[s1,24] = relu(%v0)\n  return %v1\n}\n",
       "",
       {{{"s0", 20}, {"s1", 23}, {"s2", 1}, {"s3", 2}},
        {{"s0", 16}, {"s1", 16}, {"s2", 0}, {"s3", 0}},
        {{"s0", 40}, {"s1", 47}, {"s2", 0}, {"s3", 7}},
        {{"s0", 33}, {"s1", 64}, {"s2", 31}, {"s3", 0}}}},
      {"running_sum",
       "graph kernel(%in0: f32[s0,s1]) where {s0: 2..15@3, s1: 16..@40} {\n"
       "  %v0: f32[s0,s1] = cumsum(%in0) {axis=1, exclusive=1, reverse=1}\n  return %v0\n}\n",
       "", batches_and_lengths},
      {"convolution",
       "graph kernel(%in0: f32[s0,32,9,11]@c16, %in1: f32[48,32,3,3], %in2: f32[48]) where {s0: 2..15@3} {\n"
       "  %v0: f32[s0,48,9,11]@c16 = conv(%in0, %in1, %in2) {dilations=[1,1], groups=1, pads=[1,1,1,1], "
       "strides=[1,1]}\n  %v1: f32[s0,48,9,11]@c16 = relu(%v0)\n  return %v1\n}\n",
       " in1 in2", few},
      {"depthwise",
       "graph kernel(%in0: f32[s0,32,9,11]@c16, %in1: f32[32,1,3,3]) where {s0: 2..15@3} {\n"
       "  %v0: f32[s0,32,5,6]@c16 = conv(%in0, %in1) {dilations=[1,1], groups=32, pads=[1,1,1,1], "
       "strides=[2,2]}\n  return %v0\n}\n",
       " in1", few},
      {"pooling",
       "graph kernel(%in0: f32[s0,32,9,11]@c16) where {s0: 2..15@3} {\n"
       "  %v0: f32[s0,32,5,6]@c16 = max_pool(%in0) {dilations=[1,1], kernel=[3,3], "
       "pads=[1,1,1,1], strides=[2,2]}\n  return %v0\n}\n",
       "", few},
      {"products_of_windows",
       "graph kernel(%in0: f32[s1,3,s0,20,8], %in1: f32[s1,3,s0,8,36]) where {s0: 1..@9, s1: 1..@2} {\n"
       "  %v0: f32[s1,3,s0,20,36] = matmul(%in0, %in1)\n  return %v0\n}\n",
       "",
       {{{"s0", 9}, {"s1", 2}}, {{"s0", 1}, {"s1", 5}}, {{"s0", 12}, {"s1", 3}}}},
      {"blocks_to_planes",
       "graph kernel(%in0: f32[s0,32,9,11]@c16) where {s0: 2..15@3} {\n"
       "  %v0: f32[s0,32,9,11] = to_layout(%in0) {block=0}\n  return %v0\n}\n",
       "", few},
  };
}

INSTANTIATE_TEST_SUITE_P(All, OpenKernels, testing::ValuesIn(open_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace sylvite::open_kernels_test
