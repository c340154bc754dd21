// Open kernels: every space that takes one, compiled once, at many sizes, against the interpreter.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cstdint>
#include <ostream>

#include "autotune/random_inputs.h"
#include "autotune/verify.h"
#include "frontend/graph/interpreter.h"
#include "lowering/algorithms/problems.h"
#include "lowering/plan/open_kernel.h"
#include "runtime/kernel_menu.h"
#include "runtime/kernel_runner.h"
#include "runtime/scratch.h"
#include "schedules/compile.h"
#include "schedules/space.h"

namespace sylvite {
namespace {

struct OpenCase {
  std::string name;
  std::string text;          ///< of the graph
  std::string weights = {};  ///< after "weights:"
  std::vector<SymbolValues> sizes;
};

void PrintTo(const OpenCase& test, std::ostream* out) {
  *out << test.name;
}

class OpenKernels : public testing::TestWithParam<OpenCase> {};
class OpenImages : public OpenKernels {};

/// As a kernel keeps them.
std::vector<Tensor> stored(const Kernel& kernel, std::vector<Tensor> outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i)
    outputs[i] = pack(outputs[i], layout_packing(kernel.body.type(kernel.body.outputs[i])));
  return outputs;
}

/// Values for the interpreter: dense, though random_inputs stores them as typed.
std::vector<Tensor> dense_inputs(const Kernel& kernel) {
  std::vector<Tensor> inputs;
  for (const ValueId id : kernel.body.inputs) {
    const TensorType& type = kernel.body.type(id);
    Tensor tensor(type.dtype, type.dims());
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double wave = std::sin(0.7 * static_cast<double>(i) + static_cast<double>(inputs.size()));
      if (is_float(type.dtype))
        tensor.set_double(i, wave);
      else
        tensor.set_int64(i, wave > 0 ? 1 : 0);
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

/// Fills what kernels take with numbers that raise FE_INVALID wherever they are calculated with.
void poison_scratch() {
  constexpr std::size_t count = std::size_t{1} << 20;
  auto* numbers = static_cast<std::uint32_t*>(take_scratch(nullptr, count * sizeof(std::uint32_t)));
  std::fill_n(numbers, count, 0x7fa00000U);  // a signalling NaN
  give_scratch(nullptr, numbers);
}

void expect_agreement(const Kernel& kernel, const Candidate& candidate, const std::string& object,
                      const Machine& machine) {
  std::vector<Tensor> inputs = dense_inputs(kernel);
  const std::vector<Tensor> expected = stored(kernel, interpret(kernel.body, inputs));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!kernel.input_is_weight[i])
      inputs[i] = pack(inputs[i], layout_packing(kernel.body.type(kernel.body.inputs[i])));
  ColdWeights weights(inputs, 0);
  KernelRunner runner(kernel, candidate, object, machine.target, inputs, weights, machine.threads);
  poison_scratch();
  std::feclearexcept(FE_INVALID);
  runner.call();
  EXPECT_EQ(std::fetestexcept(FE_INVALID), 0) << "calculates with numbers that it did not write";
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const TensorType& type = kernel.body.type(kernel.body.outputs[i]);
    EXPECT_LE(output_error(type, runner.outputs()[i], expected[i], {1e-4, 1e-5}), 1);
  }
}

/// The first `spaces` that take the kernel.
void expect_agreement(const OpenCase& test, std::size_t spaces) {
  const Kernel open = parse_kernel(test.text + "weights:" + test.weights + "\n");
  EXPECT_EQ(parse_kernel(open.text).text, open.text);
  for (const int threads : {1, 3}) {
    const Machine machine = detect_machine(threads);
    std::vector<BoundSpace> all = spaces_for(open, machine);
    all.resize(std::min(spaces, all.size()));
    for (const BoundSpace& space : all) {
      const Candidate candidate = space.at(space.heuristic);
      const std::string object = compile_to_object(open, candidate, machine.target);
      for (const SymbolValues& sizes : test.sizes) {
        const Kernel kernel = with_sizes(open, sizes);
        SCOPED_TRACE(
            fmt::format("{} at {}\n{}", space.name, fmt::join(kernel.sizes, ", "), candidate.to_string()));
        EXPECT_EQ(symbol_name(kernel, candidate, machine.target),
                  symbol_name(open, candidate, machine.target));
        expect_agreement(kernel, candidate, object, machine);
      }
    }
  }
}

TEST_P(OpenKernels, AgreeAtAllSizes) {
  expect_agreement(GetParam(), SIZE_MAX);
}

/// By the spaces that are for them: generic ones have the cases above.
TEST_P(OpenImages, AgreeAtAllSizes) {
  expect_agreement(GetParam(), 2);
}

std::vector<SymbolValues> each_of(const std::string& symbol, const std::vector<std::int64_t>& values) {
  std::vector<SymbolValues> sizes;
  sizes.reserve(values.size());
  for (const std::int64_t value : values) sizes.push_back({{symbol, value}});
  return sizes;
}

const std::vector<SymbolValues> batches_and_lengths = {
    {{"s0", 2}, {"s1", 16}}, {{"s0", 3}, {"s1", 17}}, {{"s0", 15}, {"s1", 33}}, {{"s0", 2}, {"s1", 100}}};

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

INSTANTIATE_TEST_SUITE_P(All, OpenImages, testing::ValuesIn(image_cases()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(All, OpenKernels, testing::ValuesIn(open_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace sylvite
