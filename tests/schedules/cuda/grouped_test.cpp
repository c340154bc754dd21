#include "schedules/cuda/grouped.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lowering/plan/grouped_filter.h"
#include "schedules/cuda/nvrtc.h"
#include "schedules/packings.h"
#include "tests/support/conv_kernels.h"
#include "tests/support/norm_kernels.h"
#include "tests/support/run_kernel.h"
#include "tests/support/sample_card.h"

namespace sylvite::grouped_test {
namespace {

using testing::HasSubstr;

ConvSpec groups(std::int64_t channels, std::int64_t groups) {
  ConvSpec spec;
  spec.channels = spec.filters = channels;
  spec.groups = groups;
  return spec;
}

TEST(CudaGrouped, GroupsJoinToUnits) {
  EXPECT_EQ(groups_of_unit(32, 4, 4), 4);
  EXPECT_EQ(groups_of_unit(32, 16, 16), 1);
  EXPECT_EQ(groups_of_unit(4, 24, 24), 2);
  EXPECT_EQ(groups_of_unit(16, 8, 16), 2);
  EXPECT_EQ(groups_of_unit(6, 4, 4), 0) << "four do not divide six";
  EXPECT_EQ(groups_of_unit(2, 232, 232), 0) << "a unit is too wide";
}

TEST(CudaGrouped, FiltersLieByUnits) {
  const std::vector<Packing> packings = packings_of(conv_kernel(groups(128, 32)), {"cuda_grouped", {}});
  EXPECT_EQ(packings[1].packed_dims({128, 4, 3, 3}), (Dims{8, 3, 3, 16, 16}));
  const std::vector<Packing> narrow = packings_of(conv_kernel(groups(24, 1)), {"cuda_grouped", {}});
  EXPECT_EQ(narrow[1].packed_dims({24, 24, 3, 3}), (Dims{3, 3, 24, 24}));
  const std::vector<Packing> depthwise = packings_of(conv_kernel(groups(64, 64)), {"cuda_depthwise", {}});
  EXPECT_EQ(depthwise[1].packed_dims({64, 1, 3, 3}), (Dims{3, 3, 64, 1}));
}

TEST(CudaGrouped, OperandsFollowTheLayout) {
  ConvSpec spec = groups(64, 64);
  spec.epilogue = "residual";
  const Reading<CudaGroupedProblem> reading = read_cuda_depthwise(conv_kernel(spec));
  ASSERT_EQ(reading.refusal, "");
  ASSERT_EQ(reading.problem.epilogue_operands.size(), 1U);
  EXPECT_EQ(reading.problem.epilogue_operands[0].row, 64);
  EXPECT_EQ(reading.problem.epilogue_operands[0].column, 1);
  EXPECT_EQ(reading.problem.bias.column, 1);
}

TEST(CudaGrouped, PoolingsAreWindowsToo) {
  for (const char* text : pooling_texts) {
    const Kernel kernel = norm_kernel(text);
    const Reading<CudaGroupedProblem> reading = read_cuda_depthwise(kernel);
    EXPECT_EQ(reading.refusal, "") << text;
    EXPECT_EQ(reading.problem.filter, -1);
    EXPECT_THAT(read_cuda_grouped(kernel).refusal, HasSubstr("no convolution"));
    const double tolerance = reading.problem.element == DType::f32 ? 2e-5 : 1e-2;
    check_candidate(kernel, reference_candidate(kernel), {}, tolerance);
    if (!cuda::missing_nvrtc().empty()) continue;
    const CudaTemplate made =
        make_cuda_depthwise(reading.problem, cuda_depthwise_choices(reading.problem).front());
    EXPECT_GT(cuda::compile_cuda(made.source).size(), 1000U);
  }
}

TEST(CudaGrouped, TakesFewChannels) {
  for (const std::int64_t channels : {8, 16, 24, 32})
    EXPECT_EQ(read_cuda_grouped(conv_kernel(groups(channels, 1))).refusal, "") << channels;
  EXPECT_THAT(read_cuda_grouped(conv_kernel(groups(4, 1))).refusal, HasSubstr("one group"));
}

/// Of more channels few results, for which the matmul template would read each pixel for every tap.
TEST(CudaGrouped, TakesFewResults) {
  ConvSpec spec = groups(96, 1);
  EXPECT_THAT(read_cuda_grouped(conv_kernel(spec)).refusal, HasSubstr("one group"));
  spec.filters = 32;
  const Reading<CudaGroupedProblem> reading = read_cuda_grouped(conv_kernel(spec));
  ASSERT_EQ(reading.refusal, "");
  EXPECT_FALSE(cuda_grouped_choices(reading.problem, false, small_card()).empty());
}

ConvSpec floats(std::int64_t channels, std::int64_t count) {
  ConvSpec spec = groups(channels, count);
  spec.element = DType::f32;
  return spec;
}

/// Channels are counted by their bytes.
TEST(CudaGrouped, TakesFewChannelsOfFloats) {
  for (const std::int64_t channels : {8, 12, 16})
    EXPECT_EQ(read_cuda_grouped(conv_kernel(floats(channels, 1))).refusal, "") << channels;
  for (const std::int64_t channels : {4, 24, 32})
    EXPECT_THAT(read_cuda_grouped(conv_kernel(floats(channels, 1))).refusal, HasSubstr("one group"));
  EXPECT_EQ(read_cuda_grouped(conv_kernel(floats(64, 8))).refusal, "");
  EXPECT_THAT(read_cuda_grouped(conv_kernel(floats(128, 4))).refusal, HasSubstr("products of their own"));
}

TEST(CudaGrouped, ProductsOfFloatsFitTheCard) {
  for (const ConvSpec& spec : {floats(8, 1), floats(16, 1), floats(64, 16), floats(64, 8)}) {
    const CudaGroupedProblem problem = read_cuda_grouped(conv_kernel(spec)).problem;
    for (const bool exact : {false, true}) {
      const std::vector<CudaGroupedChoice> choices = cuda_grouped_choices(problem, exact, small_card());
      ASSERT_FALSE(choices.empty()) << spec.channels;
      for (const CudaGroupedChoice& choice : choices)
        EXPECT_LE(make_cuda_grouped(problem, choice).launch.shape.shared_bytes, small_card().shared_bytes);
      if (!cuda::missing_nvrtc().empty()) continue;
      const CudaTemplate made = make_cuda_grouped(problem, choices.front());
      EXPECT_GT(cuda::compile_cuda(made.source).size(), 1000U);
    }
  }
}

TEST(CudaGrouped, RefusesWithAReason) {
  EXPECT_THAT(read_cuda_grouped(conv_kernel(groups(64, 1))).refusal, HasSubstr("one group"));
  EXPECT_THAT(read_cuda_depthwise(conv_kernel(groups(64, 16))).refusal, HasSubstr("not depthwise"));
  EXPECT_THAT(read_cuda_grouped(conv_kernel(groups(24, 6))).refusal, HasSubstr("do not join"));
  ConvSpec wide = groups(64, 64);
  wide.columns = 400;
  wide.taps_x = 301;
  EXPECT_EQ(read_cuda_depthwise(conv_kernel(wide)).refusal, "");
  wide.taps_x = 31;
  wide.stride = 2;
  wide.dilation = 5;  // neighbours share no line that all of their taps meet
  EXPECT_THAT(read_cuda_depthwise(conv_kernel(wide)).refusal, HasSubstr("registers"));
}

TEST(CudaGrouped, ChoicesFitTheCard) {
  for (const std::int64_t width : {4, 8, 16, 24, 32, 64}) {
    const CudaGroupedProblem problem = read_cuda_grouped(conv_kernel(groups(8 * width, 8))).problem;
    const std::vector<CudaGroupedChoice> choices = cuda_grouped_choices(problem, false, small_card());
    ASSERT_FALSE(choices.empty()) << width;
    for (const CudaGroupedChoice& choice : choices) {
      const LaunchShape shape = make_cuda_grouped(problem, choice).launch.shape;
      EXPECT_LE(shape.shared_bytes, small_card().shared_bytes) << choice.to_string();
      EXPECT_LE(shape.block[0], 512U) << choice.to_string();
    }
  }
}

/// Of one line.
ConvSpec signal(std::int64_t channels, std::int64_t dilation) {
  ConvSpec spec = groups(channels, 1);
  spec.lines = spec.taps_y = 1;
  spec.columns = 2048;
  spec.dilation = dilation;
  spec.pads = {0, dilation, 0, dilation};
  return spec;
}

TEST(CudaGrouped, TilesOfSignalsAreLong) {
  for (const std::int64_t dilation : {1, 9}) {
    const CudaGroupedProblem problem = read_cuda_grouped(conv_kernel(signal(16, dilation))).problem;
    EXPECT_GE(cuda_grouped_choices(problem, false, small_card()).front().tile_x, 64) << dilation;
  }
}

ConvSpec volume(std::int64_t channels, std::int64_t count) {
  ConvSpec spec = groups(channels, count);
  spec.frames = 6;
  return spec;
}

TEST(CudaGrouped, TakesVolumes) {
  for (const ConvSpec& spec : {volume(16, 1), volume(32, 1), volume(64, 4), volume(128, 8)}) {
    const Reading<CudaGroupedProblem> reading = read_cuda_grouped(conv_kernel(spec));
    ASSERT_EQ(reading.refusal, "") << spec.channels;
    const std::vector<CudaGroupedChoice> choices = cuda_grouped_choices(reading.problem, false, small_card());
    ASSERT_FALSE(choices.empty()) << spec.channels;
    EXPECT_TRUE(std::ranges::any_of(choices, [](const auto& choice) { return choice.tile_z > 1; }));
    for (const CudaGroupedChoice& choice : choices)
      EXPECT_LE(make_cuda_grouped(reading.problem, choice).launch.shape.shared_bytes,
                small_card().shared_bytes);
  }
  const std::vector<Packing> packings = packings_of(conv_kernel(volume(16, 1)), {"cuda_grouped", {}});
  EXPECT_EQ(packings[1].packed_dims({16, 16, 3, 3, 3}), (Dims{3, 3, 3, 16, 16}));
}

TEST(CudaGrouped, Compiles) {
  if (!cuda::missing_nvrtc().empty()) GTEST_SKIP() << cuda::missing_nvrtc();
  const CudaGroupedProblem narrow = read_cuda_grouped(conv_kernel(groups(24, 1))).problem;
  const CudaTemplate padded =
      make_cuda_grouped(narrow, cuda_grouped_choices(narrow, false, small_card()).front());
  EXPECT_GT(cuda::compile_cuda(padded.source).size(), 1000U);
  for (const ConvSpec& spec : {volume(24, 1), volume(64, 4), groups(8, 1), signal(16, 9)}) {
    const CudaGroupedProblem frames = read_cuda_grouped(conv_kernel(spec)).problem;
    const CudaTemplate made =
        make_cuda_grouped(frames, cuda_grouped_choices(frames, false, small_card()).front());
    EXPECT_GT(cuda::compile_cuda(made.source).size(), 1000U);
  }
  for (const char* epilogue : {"relu", "scale", "residual"}) {
    ConvSpec spec = groups(64, 8);
    spec.epilogue = epilogue;
    const CudaGroupedProblem grouped = read_cuda_grouped(conv_kernel(spec)).problem;
    const CudaTemplate first =
        make_cuda_grouped(grouped, cuda_grouped_choices(grouped, false, small_card()).front());
    EXPECT_GT(cuda::compile_cuda(first.source).size(), 1000U);
    spec.groups = 64;
    const CudaGroupedProblem depthwise = read_cuda_depthwise(conv_kernel(spec)).problem;
    const CudaTemplate second = make_cuda_depthwise(depthwise, cuda_depthwise_choices(depthwise).front());
    EXPECT_GT(cuda::compile_cuda(second.source).size(), 1000U);
  }
}

}  // namespace
}  // namespace sylvite::grouped_test
