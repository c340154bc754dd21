#include <tuple>

#include "schedules/cuda/grouped.h"
#include "tests/gpu/conv_case.h"
#include "tests/gpu/gpu_test.h"
#include "tests/support/norm_kernels.h"
#include "tests/support/sample_card.h"

// Choices of the templates for groups against the reference interpreter. Extents are odd, so that tiles reach over
// every border.

namespace sylvite::cuda_grouped_test {
namespace {

using GpuCudaDepthwise = GpuTest;
using GpuCudaGrouped = GpuTest;

ConvSpec groups(std::int64_t channels, std::int64_t groups, std::int64_t taps, std::int64_t stride) {
  ConvSpec spec;
  spec.channels = spec.filters = channels;
  spec.groups = groups;
  spec.lines = 17;
  spec.columns = 15;
  spec.taps_y = spec.taps_x = taps;
  spec.stride = stride;
  spec.pads = {taps / 2, taps / 2, taps / 2, taps / 2};
  return spec;
}

template <typename Choice>
void check_result(const ConvCase& one, const Choice& choice, const CudaTemplate& text, double tolerance) {
  SCOPED_TRACE(choice.to_string() + " of\n" + one.kernel.text);
  EXPECT_LT(error_of(run_template(text, one.kernel, one.inputs), one.reference), tolerance);
}

void check_depthwise(const ConvSpec& spec) {
  const ConvCase one(spec, "cuda_depthwise");
  const Reading<CudaGroupedProblem> reading = read_cuda_depthwise(one.kernel);
  ASSERT_EQ(reading.refusal, "") << one.kernel.text;
  for (const CudaDepthwiseChoice& choice : cuda_depthwise_choices(reading.problem))
    check_result(one, choice, make_cuda_depthwise(reading.problem, choice), one.tolerance);
}

/// Every choice, or every `step`-th: compiling one takes a second.
void check_grouped(const ConvSpec& spec, std::size_t step = 1, bool exact = false) {
  const ConvCase one(spec, "cuda_grouped");
  const Reading<CudaGroupedProblem> reading = read_cuda_grouped(one.kernel);
  ASSERT_EQ(reading.refusal, "") << one.kernel.text;
  const std::vector<CudaGroupedChoice> choices = cuda_grouped_choices(reading.problem, exact, small_card());
  ASSERT_FALSE(choices.empty());
  for (std::size_t i = 0; i < choices.size(); i += step)
    check_result(one, choices[i], make_cuda_grouped(reading.problem, choices[i]),
                 exact ? 1e-6 : one.tolerance);
}

TEST_F(GpuCudaDepthwise, WindowsAgreeWithTheInterpreter) {
  check_depthwise(groups(72, 72, 3, 1));
  check_depthwise(groups(40, 40, 3, 2));
  check_depthwise(groups(96, 96, 7, 1));
  check_depthwise(groups(12, 12, 5, 2));
  ConvSpec apart = groups(24, 24, 3, 1);
  apart.dilation = 2;
  apart.pads = {2, 1, 0, 3};
  apart.element = DType::f16;
  check_depthwise(apart);
}

TEST_F(GpuCudaDepthwise, DilatedWindowsAgreeWithTheInterpreter) {
  for (const std::int64_t stride : {1, 2}) {
    ConvSpec spec = groups(40, 40, 7, stride);
    spec.dilation = 3;
    spec.pads = {9, 9, 8, 9};
    spec.epilogue = "residual";
    check_depthwise(spec);
  }
}

/// They are walked in segments, of which the last may have fewer taps.
TEST_F(GpuCudaDepthwise, LongWindowsAgreeWithTheInterpreter) {
  for (const std::int64_t taps : {32, 33, 75}) {
    ConvSpec spec = groups(40, 40, 1, 1);
    spec.taps_x = taps;
    spec.columns = 91;
    spec.pads = {0, taps / 2, 0, taps / 2};
    check_depthwise(spec);
    spec.element = DType::f32;
    spec.stride = 2;
    check_depthwise(spec);
    spec.stride = 1;
    spec.dilation = 2;
    spec.pads = {0, taps, 0, taps - 1};
    check_depthwise(spec);
  }
  ConvSpec square = groups(16, 16, 35, 1);
  square.pads = {17, 17, 17, 17};
  check_depthwise(square);
}

TEST_F(GpuCudaDepthwise, EpiloguesAgreeWithTheInterpreter) {
  for (const char* epilogue : {"none", "scale", "residual"}) {
    ConvSpec spec = groups(64, 64, 3, 1);
    spec.epilogue = epilogue;
    check_depthwise(spec);
    spec.element = DType::f32;
    check_depthwise(spec);
  }
}

TEST_F(GpuCudaDepthwise, VolumesAgreeWithTheInterpreter) {
  for (const std::int64_t stride : {1, 2}) {
    ConvSpec spec = groups(40, 40, 3, stride);
    spec.frames = 5;
    spec.stride_z = stride;
    spec.epilogue = "residual";
    check_depthwise(spec);
    spec.pads_z = {2, 0};
    spec.dilation_z = 2;
    spec.element = DType::f32;
    check_depthwise(spec);
  }
  ConvSpec frames = groups(64, 8, 3, 1);
  frames.frames = 3;
  frames.taps_z = 1;
  frames.pads_z = {0, 0};
  check_grouped(frames, 6);
}

/// Half of a step of tensor cores: the rest is zeros in shared memory.
TEST_F(GpuCudaGrouped, EightChannelsAgreeWithTheInterpreter) {
  for (const char* epilogue : {"none", "scale", "residual"}) {
    ConvSpec spec = groups(8, 1, 3, 1);
    spec.epilogue = epilogue;
    check_grouped(spec, 6);
  }
  for (const std::int64_t filters : {16, 24, 64}) {
    ConvSpec spec = groups(8, 1, 5, 2);
    spec.filters = filters;
    check_grouped(spec, 6);
  }
}

TEST_F(GpuCudaDepthwise, PoolingsAgreeWithTheInterpreter) {
  for (const char* text : pooling_texts) {
    const Kernel kernel = norm_kernel(text);
    const Reading<CudaGroupedProblem> reading = read_cuda_depthwise(kernel);
    ASSERT_EQ(reading.refusal, "") << text;
    std::vector<Tensor> inputs = normal_inputs(kernel, 3);
    const Tensor reference =
        pack(interpret(kernel.body, inputs).at(0), layout_packing(kernel.body.type(kernel.body.outputs[0])));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      inputs[i] = pack(inputs[i], layout_packing(kernel.body.type(kernel.body.inputs[i])));
    for (const CudaDepthwiseChoice& choice : cuda_depthwise_choices(reading.problem)) {
      const Tensor result = run_template(make_cuda_depthwise(reading.problem, choice), kernel, inputs);
      EXPECT_LT(error_of(result, reference), 1e-2) << choice.to_string() << " of " << text;
    }
  }
}

TEST_F(GpuCudaGrouped, WidthsAgreeWithTheInterpreter) {
  for (const std::int64_t width : {4, 8, 16, 24, 32, 56, 64}) check_grouped(groups(4 * width, 4, 3, 1), 6);
}

TEST_F(GpuCudaGrouped, WindowsAgreeWithTheInterpreter) {
  check_grouped(groups(128, 8, 3, 2));
  check_grouped(groups(64, 8, 5, 1), 6);
  check_grouped(groups(64, 2, 1, 1), 6);
  ConvSpec apart = groups(64, 4, 3, 1);
  apart.dilation = 2;
  apart.pads = {2, 1, 0, 3};
  apart.element = DType::f16;
  check_grouped(apart, 6);
  ConvSpec wider = groups(64, 8, 3, 1);
  wider.filters = 128;
  check_grouped(wider, 6);
}

TEST_F(GpuCudaGrouped, FewChannelsAgreeWithTheInterpreter) {
  for (const auto& [channels, filters, stride] :
       {std::tuple<int, int, int>{24, 24, 1}, {16, 40, 2}, {32, 32, 1}, {24, 120, 2}}) {
    ConvSpec spec = groups(channels, 1, 3, stride);
    spec.filters = filters;
    spec.epilogue = "residual";
    check_grouped(spec, 4);
  }
}

TEST_F(GpuCudaGrouped, SignalsAgreeWithTheInterpreter) {
  for (const std::int64_t dilation : {1, 9}) {
    ConvSpec spec = groups(16, 1, 3, 1);
    spec.lines = spec.taps_y = 1;
    spec.columns = 900;
    spec.dilation = dilation;
    spec.pads = {0, dilation, 0, dilation};
    check_grouped(spec, 3);
  }
}

TEST_F(GpuCudaGrouped, FloatsAgreeWithTheInterpreter) {
  for (const auto& [channels, count, filters, stride] : {std::tuple<int, int, int, int>{8, 1, 16, 1},
                                                         {8, 1, 8, 2},
                                                         {12, 1, 40, 1},
                                                         {8, 1, 20, 1},
                                                         {16, 1, 16, 1},
                                                         {64, 16, 64, 2},
                                                         {64, 8, 128, 1},
                                                         {64, 4, 64, 1}}) {
    ConvSpec spec = groups(channels, count, 3, stride);
    spec.filters = filters;
    spec.element = DType::f32;
    spec.epilogue = "residual";
    for (const bool exact : {true, false}) check_grouped(spec, 6, exact);
    spec.frames = 5;
    check_grouped(spec, 9, true);
  }
}

TEST_F(GpuCudaGrouped, VolumesAgreeWithTheInterpreter) {
  for (const auto& [channels, count, filters] :
       {std::tuple<int, int, int>{16, 1, 16}, {32, 1, 16}, {24, 1, 40}, {64, 4, 64}, {32, 8, 64}}) {
    for (const std::int64_t stride : {1, 2}) {
      ConvSpec spec = groups(channels, count, 3, stride);
      spec.filters = filters;
      spec.frames = 7;
      spec.stride_z = stride;
      spec.epilogue = "residual";
      check_grouped(spec, 5);
      spec.pads_z = {2, 0};
      spec.dilation_z = 2;
      spec.lines = 9;
      check_grouped(spec, 9);
    }
  }
}

TEST_F(GpuCudaGrouped, EpiloguesAgreeWithTheInterpreter) {
  for (const char* epilogue : {"none", "scale", "residual"}) {
    ConvSpec spec = groups(64, 8, 3, 1);
    spec.epilogue = epilogue;
    check_grouped(spec, 6);
  }
}

}  // namespace
}  // namespace sylvite::cuda_grouped_test
