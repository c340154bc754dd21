#include "schedules/cuda/conv.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedules/cuda/matmul_maps.h"
#include "schedules/cuda/nvrtc.h"
#include "schedules/packings.h"
#include "tests/support/conv_kernels.h"
#include "tests/support/sample_card.h"

namespace sylvite::conv_test {
namespace {

using testing::HasSubstr;

CudaMatmulProblem problem_of(const ConvSpec& spec) {
  const Reading<CudaMatmulProblem> reading = read_cuda_conv(conv_kernel(spec));
  EXPECT_EQ(reading.refusal, "");
  return reading.problem;
}

TEST(CudaConv, PixelsAreRows) {
  const CudaMatmulProblem problem = problem_of({});
  EXPECT_EQ(problem.m, 2 * 12 * 9);
  EXPECT_EQ(problem.n, 64);
  EXPECT_EQ(problem.k, 9 * 64);
  ASSERT_TRUE(problem.windows);
  EXPECT_EQ(problem.windows->line_pitch, 9 * 64);
  EXPECT_EQ(problem.windows->pad_x, 1);
}

TEST(CudaConv, FramesOfVolumesAreBatches) {
  ConvSpec spec;
  spec.frames = 7;
  spec.stride_z = 2;
  spec.epilogue = "residual";
  const CudaMatmulProblem problem = problem_of(spec);
  EXPECT_EQ(problem.batch, 2 * 4);
  EXPECT_EQ(problem.m, 12 * 9);
  EXPECT_EQ(problem.k, 27 * 64);
  EXPECT_EQ(problem.epilogue.operands[1].strides, (Dims{std::int64_t{12} * 9 * 64, 64, 1}));
  const CudaTemplate text =
      make_cuda_matmul(problem, cuda_conv_choices(problem, sample_card())[0], sample_card());
  EXPECT_EQ(text.launch.maps[1].dims[3], 2 * 7) << "all frames";
}

TEST(CudaConv, WindowsOfOneFrameAreThoseOfImages) {
  ConvSpec spec;
  spec.frames = 7;
  spec.taps_z = 1;
  spec.pads_z = {0, 0};
  const CudaMatmulProblem images = problem_of(spec);
  EXPECT_EQ(images.batch, 1);
  EXPECT_EQ(images.m, 2 * 7 * 12 * 9);
  EXPECT_EQ(images.windows->images, 14);
  spec.taps_y = spec.taps_x = 1;
  spec.pads = {0, 0, 0, 0};
  EXPECT_FALSE(problem_of(spec).windows) << "a matrix of all pixels";
  spec.taps_z = 3;
  const CudaMatmulProblem lines = problem_of(spec);
  EXPECT_EQ(lines.windows->lines, 7) << "frames";
  EXPECT_EQ(lines.windows->columns, 12 * 9);
  EXPECT_EQ(lines.batch, 1);
}

ConvSpec in_groups(std::int64_t groups, std::int64_t channels) {
  ConvSpec spec;
  spec.groups = groups;
  spec.channels = groups * channels;
  spec.filters = groups * 72;
  spec.epilogue = "residual";
  return spec;
}

TEST(CudaConv, WideGroupsAreBatches) {
  const CudaMatmulProblem problem = problem_of(in_groups(3, 96));
  EXPECT_EQ(problem.batch, 3);
  EXPECT_EQ(problem.n, 72);
  EXPECT_EQ(problem.k, 9 * 96);
  EXPECT_EQ(problem.windows->column_pitch, 3 * 96);
  EXPECT_EQ(problem.epilogue.operands[0].strides, (Dims{72, 0, 1}));
  EXPECT_EQ(problem.epilogue.operands[1].strides, (Dims{72, std::int64_t{3} * 72, 1}));
  const CudaTemplate text =
      make_cuda_matmul(problem, cuda_conv_choices(problem, sample_card())[0], sample_card());
  EXPECT_THAT(text.source.text, HasSubstr("constexpr int STAGE_ROW = 64;")) << "192 bytes end with a stage";
  EXPECT_THAT(text.source.text, HasSubstr("constexpr int RESIDUAL = 1;"));
  EXPECT_EQ(text.launch.maps[2].pitches[0], 3 * 72 * 2);
  EXPECT_EQ(text.launch.maps[2].pitches[1], 72 * 2);
  ConvSpec matrix = in_groups(3, 40);
  matrix.taps_x = matrix.taps_y = 1;
  matrix.pads = {0, 0, 0, 0};
  EXPECT_EQ(problem_of(matrix).a.batch_pitch, 40);
  EXPECT_EQ(refuse_tensor_maps(problem_of(matrix)), "");
}

TEST(CudaConv, SomeChannelsAreReadInPlace) {
  ConvSpec spec;
  spec.channels_beside = 24;
  const CudaMatmulProblem problem = problem_of(spec);
  EXPECT_EQ(problem.a.offset, 24);
  EXPECT_EQ(problem.windows->column_pitch, 64 + 48);
  EXPECT_EQ(problem.windows->channels, 64);
  const CudaTemplate text =
      make_cuda_matmul(problem, cuda_conv_choices(problem, sample_card())[0], sample_card());
  EXPECT_EQ(text.launch.maps[1].offset, 48);
  EXPECT_EQ(text.launch.maps[1].dims[0], 64) << "channels beside are not read";
  spec.channels_beside = 12;
  EXPECT_THAT(refuse_tensor_maps(problem_of(spec)), HasSubstr("beside a boundary"));
}

/// A head of a few outputs is one tile of a long depth: several blocks share it.
TEST(CudaConv, FewOutputsOfALongDepthAreSplit) {
  ConvSpec spec;
  spec.filters = 16;
  spec.channels = 512;
  spec.images = 1;
  spec.taps_x = spec.taps_y = 7;
  spec.pads = {3, 3, 3, 3};
  EXPECT_GT(cuda_conv_choices(problem_of(spec), sample_card())[0].split, 1);
}

TEST(CudaConv, OneTapIsAMatrix) {
  ConvSpec spec;
  spec.taps_x = spec.taps_y = 1;
  spec.pads = {0, 0, 0, 0};
  EXPECT_FALSE(problem_of(spec).windows);
  EXPECT_EQ(problem_of(spec).a.pitch, 64);
  spec.stride = 2;
  EXPECT_TRUE(problem_of(spec).windows);
}

TEST(CudaConv, TapsOfFewChannelsAreJoined) {
  ConvSpec spec;
  spec.channels = 4;
  spec.columns = 36;
  spec.taps_x = 8;
  spec.stride = 2;
  spec.pads = {0, 0, 0, 0};
  const CudaMatmulProblem problem = problem_of(spec);
  EXPECT_EQ(problem.windows->channels, 32);
  EXPECT_EQ(problem.windows->columns, problem.windows->out_columns);
  EXPECT_EQ(problem.windows->column_pitch, 8);
  EXPECT_EQ(problem.windows->taps_x, 1);
  EXPECT_EQ(problem.k, 3 * 32);
}

TEST(CudaConv, EpilogueOperandsFollowTheLayout) {
  ConvSpec spec;
  spec.epilogue = "residual";
  const CudaMatmulProblem problem = problem_of(spec);
  ASSERT_EQ(problem.epilogue.operands.size(), 2U);
  EXPECT_EQ(problem.epilogue.operands[0].strides, (Dims{0, 0, 1}));   // the bias
  EXPECT_EQ(problem.epilogue.operands[1].strides, (Dims{0, 64, 1}));  // as the result lies
  EXPECT_TRUE(problem.epilogue_reads_activations);
  const CudaTemplate text =
      make_cuda_matmul(problem, cuda_conv_choices(problem, sample_card())[0], sample_card());
  EXPECT_THAT(text.source.text, HasSubstr("constexpr int RESIDUAL = 1;"));
  EXPECT_EQ(text.launch.maps.at(3).argument, 3);
}

TEST(CudaConv, MasksComeInBoxesBesideTheResults) {
  for (const auto& [epilogue, bytes, residual] :
       {std::tuple{"mask", 1, 0}, std::tuple{"masked", 1, 1}, std::tuple{"hidden", 2, 1}}) {
    ConvSpec spec;
    spec.epilogue = epilogue;
    const CudaMatmulProblem problem = problem_of(spec);
    const CudaTemplate text =
        make_cuda_matmul(problem, cuda_conv_choices(problem, sample_card())[0], sample_card());
    EXPECT_THAT(text.source.text, HasSubstr(fmt::format("constexpr int RESIDUAL = {};", residual)));
    EXPECT_THAT(text.source.text, HasSubstr(fmt::format("constexpr int BESIDE_BYTES = {};", bytes)));
    if (bytes == 1) EXPECT_EQ(text.launch.maps.at(4).argument, 3 + residual);
    EXPECT_EQ(text.launch.maps.at(4).swizzle, 64 * bytes);
    EXPECT_EQ(text.launch.maps.at(4).box[0], 64);
    spec.filters = 72;  // rows of truth values begin beside multiples of 16 bytes
    const CudaMatmulProblem odd = problem_of(spec);
    EXPECT_THAT(make_cuda_matmul(odd, cuda_conv_choices(odd, sample_card())[0], sample_card()).source.text,
                HasSubstr(fmt::format("constexpr int BESIDE_BYTES = {};", bytes == 1 ? 0 : 2)));
  }
}

TEST(CudaConv, FiltersArePackedTapByTap) {
  const Kernel kernel = conv_kernel({});
  const std::vector<Packing> packings = packings_of(kernel, {"cuda_conv", {}});
  EXPECT_TRUE(packings[0].is_identity());
  EXPECT_EQ(packings[1].packed_dims({64, 32, 3, 5}), (Dims{64, 3, 5, 32}));
  ConvSpec volume;
  volume.frames = 4;
  EXPECT_EQ(packings_of(conv_kernel(volume), {"cuda_conv", {}})[1].packed_dims({64, 32, 2, 3, 5}),
            (Dims{64, 2, 3, 5, 32}));
}

TEST(CudaConv, FiltersMayBeValues) {
  ConvSpec spec;
  spec.filter_is_weight = false;
  EXPECT_FALSE(problem_of(spec).b.is_weight);
  EXPECT_EQ(problem_of(spec).windows->filter_pitch, problem_of({}).windows->filter_pitch);
  EXPECT_TRUE(packings_of(conv_kernel(spec), {"cuda_conv", {}})[1].is_identity());
}

TEST(CudaConv, RefusesWithAReason) {
  ConvSpec spec;
  spec.channels = 12;
  EXPECT_THAT(refuse_tensor_maps(read_cuda_conv(conv_kernel(spec)).problem), HasSubstr("24 bytes"));
  spec = {};
  spec.element = DType::f64;
  EXPECT_THAT(read_cuda_conv(conv_kernel(spec)).refusal, HasSubstr("f64"));
  spec = {};
  spec = in_groups(2, 40);
  EXPECT_THAT(refuse_tensor_maps(read_cuda_conv(conv_kernel(spec)).problem), HasSubstr("inside a stage"));
  EXPECT_THAT(read_cuda_conv(conv_kernel(in_groups(4, 16))).refusal, HasSubstr("4 groups"));
  spec = {};
  spec.stride = 9;
  EXPECT_THAT(refuse_tensor_maps(read_cuda_conv(conv_kernel(spec)).problem), HasSubstr("too far apart"));
}

/// A stage has half as many channels of f32.
TEST(CudaConv, FloatsAreMultipliedInTf32) {
  ConvSpec spec;
  spec.element = DType::f32;
  spec.channels = 12;
  spec.epilogue = "residual";
  const CudaMatmulProblem problem = problem_of(spec);
  EXPECT_EQ(problem.windows->channels, 12);
  const CudaTemplate text =
      make_cuda_matmul(problem, cuda_conv_choices(problem, sample_card())[0], sample_card());
  EXPECT_THAT(text.source.text, HasSubstr("k8.f32.tf32.tf32"));
  EXPECT_THAT(text.source.text, HasSubstr("constexpr int RESIDUAL = 1;"));
  EXPECT_TRUE(text.launch.maps[0].rounds_to_tf32 && text.launch.maps[1].rounds_to_tf32);
  EXPECT_FALSE(text.launch.maps[2].rounds_to_tf32 ||
               text.launch.maps[3].rounds_to_tf32);  // result and residual
}

TEST(CudaConv, EveryChoiceOfferedCanBeMade) {
  for (const auto& [filters, element] :
       {std::pair{64, DType::bf16}, {512, DType::bf16}, {64, DType::f32}, {512, DType::f32}}) {
    for (const char* epilogue : {"relu", "residual"}) {
      ConvSpec spec;
      spec.element = element;
      spec.images = 32;
      spec.filters = filters;
      spec.epilogue = epilogue;
      const CudaMatmulProblem problem = problem_of(spec);
      const std::vector<CudaMatmulChoice> choices = cuda_conv_choices(problem, sample_card());
      EXPECT_GE(choices.size(), 4U);
      for (const CudaMatmulChoice& choice : choices) {
        const CudaTemplate text = make_cuda_matmul(problem, choice, sample_card());
        EXPECT_LE(text.launch.shape.shared_bytes, sample_card().shared_bytes) << choice.to_string();
      }
    }
  }
}

TEST(CudaConv, PixelsThatBeginBetweenLinesTakeLargerTiles) {
  ConvSpec spec;
  spec.images = 32;
  spec.lines = spec.columns = 56;
  const auto loads_of_best = [&](std::int64_t channels) {
    spec.channels = spec.filters = channels;
    const CudaMatmulProblem problem = problem_of(spec);
    const CudaMatmulChoice best = cuda_conv_choices(problem, sample_card())[0];
    return (1. / best.tile_x + 1. / best.tile_y) * best.split;
  };
  EXPECT_LT(loads_of_best(288), loads_of_best(320));
  spec.channels = 64;
  EXPECT_EQ(row_alignment(problem_of(spec)), 128);
  spec.channels = 72;
  EXPECT_EQ(row_alignment(problem_of(spec)), 16);
  spec.channels_beside = 28;
  EXPECT_EQ(row_alignment(problem_of(spec)), 128);
}

TEST(CudaConv, Compiles) {
  if (!cuda::missing_nvrtc().empty()) GTEST_SKIP() << cuda::missing_nvrtc();
  ConvSpec volume;
  volume.frames = 5;
  for (ConvSpec spec : {ConvSpec(), volume, in_groups(2, 96)}) {
    spec.epilogue = "residual";
    const CudaMatmulProblem problem = problem_of(spec);
    CudaMatmulChoice choice;
    choice.swapped = true;
    choice.tile_x = 64;
    choice.tile_y = 104;
    const CudaTemplate text = make_cuda_matmul(problem, choice, sample_card());
    EXPECT_GT(cuda::compile_cuda(text.source).size(), 1000U);
  }
}

}  // namespace
}  // namespace sylvite::conv_test
