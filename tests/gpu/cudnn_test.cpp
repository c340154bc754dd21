#include "runtime/cuda/cudnn.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "schedules/cuda/candidate.h"
#include "schedules/cuda/forms.h"
#include "schedules/cuda/library_conv.h"
#include "tests/gpu/conv_case.h"
#include "tests/gpu/gpu_test.h"

// cuDNN's engines against the reference interpreter.

namespace sylvite::cudnn_test {
namespace {

class GpuCudnn : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    try {
      (void)cuda::cudnn_version();
    } catch (const UnsupportedError& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

constexpr std::size_t every = 64;
constexpr std::size_t offered = 8;  // by the space

CudaTemplate engine_of(const Kernel& kernel, std::size_t number) {
  const Candidate candidate{{cudnn_form, {{"engine", static_cast<std::int64_t>(number)}}}, {}};
  return cuda_template_of(kernel, candidate).value();
}

/// Engines say that they cannot take the convolution, or agree; one of them does. How many.
std::size_t check(const ConvSpec& spec, std::size_t most = offered) {
  const ConvCase one(spec, cudnn_form);
  SCOPED_TRACE(one.kernel.text);
  const Reading<LibraryConvProblem> reading = read_library_conv(one.kernel);
  EXPECT_EQ(reading.refusal, "");
  const std::size_t proposed = cuda::CudnnConv(reading.problem).engine_count();
  std::size_t agreeing = 0;
  for (std::size_t i = 0; i < std::min(most, proposed); ++i) {
    try {
      const Tensor result = run_template(engine_of(one.kernel, i), one.kernel, one.inputs);
      EXPECT_LT(error_of(result, one.reference), one.tolerance) << "engine " << i;
      ++agreeing;
    } catch (const UnsupportedError&) {
      continue;
    }
  }
  EXPECT_GT(agreeing, 0U) << proposed << " proposed";
  EXPECT_THROW((void)run_template(engine_of(one.kernel, proposed), one.kernel, one.inputs), UnsupportedError);
  return agreeing;
}

TEST_F(GpuCudnn, EnginesAgreeWithTheInterpreter) {
  EXPECT_GT(check({}, every), 3U);
}

TEST_F(GpuCudnn, EpiloguesAgreeWithTheInterpreter) {
  for (const char* epilogue : {"none", "residual"}) {
    ConvSpec spec;
    spec.epilogue = epilogue;
    spec.filters = 136;
    check(spec);
  }
}

TEST_F(GpuCudnn, WindowsAgreeWithTheInterpreter) {
  ConvSpec step;
  step.taps_y = step.taps_x = 1;
  step.pads = {0, 0, 0, 0};
  step.stride = 2;
  check(step);
  ConvSpec first;
  first.channels = 4;
  first.lines = 33;
  first.columns = 36;
  first.taps_y = 7;
  first.taps_x = 8;
  first.stride = 2;
  first.pads = {0, 0, 0, 0};
  check(first);
}

TEST_F(GpuCudnn, TypesAgreeWithTheInterpreter) {
  for (const DType element : {DType::f16, DType::f32}) {
    ConvSpec spec;
    spec.element = element;
    spec.epilogue = "residual";
    check(spec);
  }
}

TEST_F(GpuCudnn, GroupsAgreeWithTheInterpreter) {
  ConvSpec spec;
  spec.groups = 4;
  check(spec);
  spec.groups = spec.channels;
  check(spec);
}

/// A program's first run may be the one that is captured.
TEST_F(GpuCudnn, FirstRunsMayBeCaptured) {
  const ConvCase one({}, cudnn_form);
  std::size_t captured = 0;
  for (std::size_t i = 0; i < offered; ++i) {
    cuda::TemplateKernel kernel(cuda::compile_cuda(engine_of(one.kernel, i)));
    OnDevice device(one.kernel, one.inputs);
    cuda::Launch launch;
    try {
      launch = kernel.bind(device.addresses());
    } catch (const UnsupportedError&) {
      continue;
    }
    const cuda::Graph graph(device.stream, [&] { cuda::launch(launch, device.stream.get()); });
    graph.launch(device.stream.get());
    EXPECT_LT(error_of(device.result(), one.reference), one.tolerance) << "engine " << i;
    ++captured;
  }
  EXPECT_GT(captured, 0U);
}

}  // namespace
}  // namespace sylvite::cudnn_test
