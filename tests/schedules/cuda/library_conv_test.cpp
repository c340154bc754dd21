#include "schedules/cuda/library_conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedules/compile.h"
#include "schedules/cuda/candidate.h"
#include "schedules/cuda/library_call.h"
#include "schedules/cuda/object.h"
#include "schedules/cuda/spaces.h"
#include "schedules/packings.h"
#include "tests/support/bound_space.h"
#include "tests/support/conv_kernels.h"
#include "tests/support/gpu_cases.h"

namespace sylvite::library_conv_test {
namespace {

using testing::HasSubstr;

LibraryConvProblem problem_of(const ConvSpec& spec) {
  const Reading<LibraryConvProblem> reading = read_library_conv(conv_kernel(spec));
  EXPECT_EQ(reading.refusal, "");
  return reading.problem;
}

Machine machine_with_cudnn() {
  Machine machine = with_gpu(detect_machine(1), sample_card());
  machine.gpu_tools.cudnn = 91900;
  return machine;
}

TEST(LibraryConv, ReadsOperandsAndWindows) {
  ConvSpec spec;
  spec.epilogue = "residual";
  spec.filters = 32;
  spec.stride = 2;
  spec.pads = {1, 2, 0, 1};
  const LibraryConvProblem problem = problem_of(spec);
  EXPECT_EQ(problem.bias_argument, 2);
  EXPECT_EQ(problem.residual_argument, 3);
  EXPECT_EQ(problem.out_argument, 4);
  EXPECT_EQ(problem.images, (Dims{2, 64, 12, 9}));
  EXPECT_EQ(problem.filter, (Dims{32, 64, 3, 3}));
  EXPECT_EQ(problem.out, (Dims{2, 32, 6, 5}));
  EXPECT_EQ(problem.strides, (Dims{2, 2}));
  EXPECT_EQ(problem.pads_before, (Dims{1, 2}));
  EXPECT_EQ(problem.pads_after, (Dims{0, 1}));
  EXPECT_TRUE(problem.relu);
}

TEST(LibraryConv, EpiloguesMayBeAbsent) {
  ConvSpec spec;
  spec.epilogue = "none";
  EXPECT_FALSE(problem_of(spec).relu);
  EXPECT_EQ(problem_of(spec).residual_argument, -1);
}

TEST(LibraryConv, RefusesWithAReason) {
  ConvSpec spec;
  spec.epilogue = "scale";
  EXPECT_THAT(read_library_conv(conv_kernel(spec)).refusal, HasSubstr("no such epilogue"));
  spec = {};
  spec.element = DType::f64;
  EXPECT_THAT(read_library_conv(conv_kernel(spec)).refusal, HasSubstr("f64"));
}

TEST(LibraryConv, LibrariesAreAskedForAndNamed) {
  Machine machine = machine_with_cudnn();
  const Kernel kernel = conv_kernel({});
  EXPECT_EQ(cudnn_space.bind(kernel, machine).refusal, "");
  const Candidate candidate = bound(cudnn_space, kernel, machine).at({3});
  EXPECT_EQ(Candidate::parse(candidate.to_string()), candidate);
  const CudaTemplate call = cuda_template_of(kernel, candidate).value();
  ASSERT_TRUE(call.launch.library);
  EXPECT_EQ(std::get<LibraryConv>(*call.launch.library).engine, 3U);
  const CudaObject object = parse_cuda_object(compile_to_object(kernel, candidate, machine.target));
  EXPECT_EQ(object.launch, call.launch);
  EXPECT_EQ(object.image, "");
  machine.gpu_tools.cudnn = 0;
  EXPECT_THAT(cudnn_space.bind(kernel, machine).refusal, HasSubstr("schedules.cudnn"));
}

/// An engine may turn out to be impossible, which only a search can get over.
TEST(LibraryConv, NothingUnmeasuredIsALibrarys) {
  for (const std::int64_t groups : {1, 4, 64}) {
    ConvSpec spec;
    spec.groups = groups;
    const Kernel kernel = conv_kernel(spec);
    EXPECT_EQ(cudnn_space.bind(kernel, machine_with_cudnn()).refusal, "");
    EXPECT_NE(default_candidate(kernel, machine_with_cudnn()).form.name, "cudnn");
  }
}

TEST(LibraryConv, FloatsAskForTf32) {
  Machine machine = machine_with_cudnn();
  ConvSpec spec;
  spec.element = DType::f32;
  const Kernel kernel = conv_kernel(spec);
  EXPECT_THAT(cudnn_space.bind(kernel, machine).refusal, HasSubstr("TF32"));
  machine.tf32 = true;
  EXPECT_EQ(cudnn_space.bind(kernel, machine).refusal, "");
  EXPECT_TRUE(multiplies_in_tf32(kernel, bound(cudnn_space, kernel, machine).at({0})));
}

TEST(LibraryConv, FiltersArePackedTapByTap) {
  EXPECT_EQ(packings_of(conv_kernel({}), {"cudnn", {}})[1].packed_dims({64, 32, 3, 5}), (Dims{64, 3, 5, 32}));
}

}  // namespace
}  // namespace sylvite::library_conv_test
