#include "schedules/cuda/conv.h"
#include "tests/gpu/conv_case.h"
#include "tests/gpu/gpu_test.h"
#include "tests/support/sample_card.h"

// Convolutions by the template of products against the reference interpreter. Extents are odd, so that tiles
// reach over every border and pixels of one tile lie in several lines and images; the grid is small.

namespace sylvite::cuda_conv_test {
namespace {

using GpuCudaConv = GpuTest;

CudaMatmulChoice tile(int channels, int pixels, bool ping_pong, int split = 1) {
  CudaMatmulChoice choice;
  choice.swapped = true;
  choice.tile_x = channels;
  choice.tile_y = pixels;
  choice.ping_pong = ping_pong;
  choice.split = split;
  return choice;
}

std::vector<CudaMatmulChoice> some_choices() {
  CudaMatmulChoice pixels_first = tile(128, 64, true);
  pixels_first.swapped = false;
  CudaMatmulChoice shared_pixels = tile(64, 112, true), shared_filter = tile(64, 96, true);
  shared_pixels.cluster_x = 2;
  shared_filter.cluster_y = 2;
  return {tile(64, 104, true), tile(128, 96, false), tile(128, 112, false, 2),
          pixels_first,        shared_pixels,        shared_filter};
}

void check(const ConvSpec& spec, const std::vector<CudaMatmulChoice>& choices = some_choices(),
           bool exact = false) {
  const ConvCase one(spec, "cuda_conv");
  Reading<CudaMatmulProblem> reading = read_cuda_conv(one.kernel);
  ASSERT_EQ(reading.refusal, "") << one.kernel.text;
  reading.problem.exact = exact;
  for (const CudaMatmulChoice& choice : choices) {
    if (!refuse_cuda_matmul(reading.problem, choice, small_card()).empty()) continue;
    SCOPED_TRACE(choice.to_string() + " of\n" + one.kernel.text);
    const CudaTemplate text = make_cuda_matmul(reading.problem, choice, small_card());
    EXPECT_LT(error_of(run_template(text, one.kernel, one.inputs), one.reference),
              exact ? 1e-6 : one.tolerance);
  }
}

ConvSpec in_groups(ConvSpec spec, std::int64_t groups, std::int64_t channels, std::int64_t filters) {
  spec.groups = groups;
  spec.channels = groups * channels;
  spec.filters = groups * filters;
  spec.epilogue = "residual";
  return spec;
}

ConvSpec taps(std::int64_t count, std::int64_t stride) {
  ConvSpec spec;
  spec.taps_y = spec.taps_x = count;
  spec.stride = stride;
  const std::int64_t pad = count / 2;
  spec.pads = {pad, pad, pad, pad};
  return spec;
}

TEST_F(GpuCudaConv, WindowsAgreeWithTheInterpreter) {
  check(taps(3, 1));
  check(taps(3, 2));
  check(taps(1, 1));
  check(taps(1, 2));
  ConvSpec wide = taps(5, 1);
  wide.channels = 72;
  wide.filters = 136;
  wide.pads = {1, 2, 2, 0};
  check(wide);
  ConvSpec apart = taps(3, 3);
  apart.dilation = 2;
  apart.channels = 24;
  apart.element = DType::f16;
  check(apart);
}

/// The last stage of a tap has 8 to 56 channels, and parts of a split begin within taps. Few results stand on the side of 8s.
TEST_F(GpuCudaConv, DepthsThatEndWithinAStageAgreeWithTheInterpreter) {
  CudaMatmulChoice few = tile(128, 72, true), both = tile(256, 72, false);
  few.swapped = both.swapped = false;
  for (const std::int64_t channels : {8, 40, 72, 136}) {
    for (const std::int64_t count : {1, 3}) {
      ConvSpec spec = taps(count, 1);
      spec.channels = channels;
      spec.filters = 72;
      spec.epilogue = "residual";
      check(spec, {tile(64, 104, true), tile(128, 96, false), tile(128, 112, false, 2), few, both});
    }
  }
}

TEST_F(GpuCudaConv, FiltersThatAreNoWeightsAgreeWithTheInterpreter) {
  for (ConvSpec spec : {taps(3, 1), taps(1, 2), taps(5, 1)}) {
    spec.filter_is_weight = false;
    spec.channels = 72;
    check(spec);
  }
}

TEST_F(GpuCudaConv, EpiloguesAgreeWithTheInterpreter) {
  for (const char* epilogue : {"none", "scale", "residual"}) {
    for (const std::int64_t count : {1, 3}) {
      ConvSpec spec = taps(count, 1);
      spec.filters = 136;
      spec.epilogue = epilogue;
      check(spec);
    }
  }
}

/// Two operands come in boxes: into the buffers of results, and beside them.
TEST_F(GpuCudaConv, MasksAgreeWithTheInterpreter) {
  for (const char* epilogue : {"mask", "masked", "hidden"}) {
    for (const std::int64_t count : {1, 3}) {
      ConvSpec spec = taps(count, 1);
      spec.filters = 144;
      spec.epilogue = epilogue;
      check(spec);
      spec.channels = 192;  // so deep that a split has parts
      check(spec, {tile(128, 32, false, 2), tile(64, 72, true), tile(256, 64, false)});
    }
  }
  ConvSpec floats = taps(3, 1);
  floats.element = DType::f32;
  floats.epilogue = "masked";
  check(floats);
  ConvSpec groups = in_groups(taps(3, 1), 3, 32, 80);
  groups.epilogue = "masked";
  check(groups);
}

TEST_F(GpuCudaConv, FloatsAgreeWithTheInterpreter) {
  for (const char* epilogue : {"relu", "scale", "residual"}) {
    for (const auto& [count, stride] : {std::pair{1, 1}, {3, 1}, {3, 2}}) {
      ConvSpec spec = taps(count, stride);
      spec.element = DType::f32;
      spec.channels = 36;
      spec.filters = 136;
      spec.epilogue = epilogue;
      check(spec);
      check(spec, {tile(64, 104, true), tile(128, 96, false)}, true);
    }
  }
  ConvSpec first;
  first.element = DType::f32;
  first.channels = 4;
  first.lines = 33;
  first.columns = 36;
  first.taps_y = first.taps_x = 7;
  first.stride = 2;
  first.pads = {0, 0, 0, 0};
  check(first);
  check(first, {tile(64, 96, true), tile(128, 112, false, 2)}, true);
}

/// Frames that windows take several of are batches.
TEST_F(GpuCudaConv, VolumesAgreeWithTheInterpreter) {
  for (const auto& [count, stride] : {std::pair{3, 1}, {3, 2}, {1, 1}, {1, 2}}) {
    ConvSpec spec = taps(count, stride);
    spec.frames = 5;
    spec.epilogue = "residual";
    check(spec);
    spec.stride_z = 2;
    spec.pads_z = {2, 0};
    check(spec);
    spec.dilation_z = 2;
    spec.filters = 136;
    check(spec);
  }
  ConvSpec first;
  first.frames = 6;
  first.channels = 8;
  first.pads = {0, 0, 0, 0};
  first.pads_z = {0, 0};
  check(first);
  first.element = DType::f32;
  check(first);
  first.filter_is_weight = false;
  check(first);
}

TEST_F(GpuCudaConv, SomeChannelsAgreeWithTheInterpreter) {
  for (ConvSpec spec : {taps(3, 1), taps(1, 1), taps(3, 2)}) {
    spec.channels = 40;
    spec.channels_beside = 16;
    check(spec);
  }
}

/// Groups are batches, whose results lie side by side.
TEST_F(GpuCudaConv, WideGroupsAgreeWithTheInterpreter) {
  check(in_groups(taps(3, 1), 3, 32, 72));
  check(in_groups(taps(3, 2), 2, 96, 40));
  check(in_groups(taps(1, 1), 4, 40, 136));
  check(in_groups(taps(1, 2), 2, 128, 64));
  ConvSpec floats = in_groups(taps(3, 1), 2, 32, 24);
  floats.element = DType::f32;
  check(floats);
}

/// As filters of each image's own are written.
TEST_F(GpuCudaConv, WideGroupsByFiltersThatAreNoWeightsAgreeWithTheInterpreter) {
  for (ConvSpec spec : {in_groups(taps(3, 1), 3, 64, 72), in_groups(taps(3, 2), 5, 32, 64),
                        in_groups(taps(1, 1), 4, 40, 136)}) {
    spec.filter_is_weight = false;
    spec.images = 1;
    check(spec);
  }
}

/// Windows that overlap in memory.
TEST_F(GpuCudaConv, JoinedTapsAgreeWithTheInterpreter) {
  ConvSpec first;
  first.channels = 4;
  first.lines = 33;
  first.columns = 36;
  first.taps_y = 7;
  first.taps_x = 8;
  first.stride = 2;
  first.pads = {0, 0, 0, 0};
  check(first);
  first.channels = 8;
  first.taps_x = first.taps_y = 3;
  first.stride = 1;
  check(first);
}

TEST_F(GpuCudaConv, RepeatedRunsAgree) {
  ConvSpec spec = taps(3, 1);
  spec.images = 5;
  spec.epilogue = "residual";
  const Kernel kernel = conv_kernel(spec);
  std::vector<Tensor> inputs = normal_inputs(kernel, 3);
  const CudaTemplate text =
      make_cuda_matmul(read_cuda_conv(kernel).problem, tile(64, 64, true), small_card());
  const Tensor once = run_template(text, kernel, inputs);
  EXPECT_EQ(error_of(run_template(text, kernel, inputs, 20), once), 0);
}

/// Everything that the first guesses of ResNet-50's kernels may be, with the whole card.
TEST_F(GpuCudaConv, FirstGuessesAgreeWithTheInterpreter) {
  for (const std::int64_t channels : {64, 256}) {
    ConvSpec spec = taps(3, 1);
    spec.channels = channels;
    spec.filters = 256;
    spec.lines = spec.columns = 14;
    const Kernel kernel = conv_kernel(spec);
    check(spec, cuda_conv_choices(read_cuda_conv(kernel).problem, sample_card()));
  }
}

}  // namespace
}  // namespace sylvite::cuda_conv_test
