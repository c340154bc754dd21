#include <cmath>
#include <limits>

#include "schedules/cuda/conv.h"
#include "schedules/cuda/warps.h"
#include "tests/gpu/conv_case.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/matmul_kernels.h"
#include "tests/support/sample_card.h"

// Products of single warps against the reference interpreter. Extents are odd, so that tiles reach over every border.

namespace sylvite::cuda_warps_test {
namespace {

using GpuCudaWarps = GpuTest;

double tolerance_of(const MatmulSpec& spec, bool exact) {
  if (spec.element == DType::bf16 || spec.out == DType::bf16) return 1e-2;
  if (exact) return spec.out == DType::f32 ? 1e-6 : 1e-3;
  return spec.element == DType::f32 ? 5e-4 : 2e-3;
}

/// With at most so many of the choices.
void check(const Kernel& kernel, double tolerance, bool exact, std::size_t most) {
  const Reading<CudaMatmulProblem> reading = read_cuda_matmul(kernel);
  ASSERT_EQ(reading.refusal, "") << kernel.text;
  const std::vector<Tensor> inputs = normal_inputs(kernel, 7);
  const Tensor reference = interpret(kernel.body, inputs).at(0);
  std::vector<CudaWarpsChoice> choices = cuda_warps_choices(reading.problem, exact, sample_card());
  ASSERT_FALSE(choices.empty());
  choices.resize(std::min(most, choices.size()));
  for (const CudaWarpsChoice& choice : choices) {
    SCOPED_TRACE(choice.to_string() + " of\n" + kernel.text);
    const CudaTemplate text = make_cuda_warps(reading.problem, choice);
    EXPECT_LT(error_of(run_template(text, kernel, inputs), reference), tolerance);
  }
}

void check(const MatmulSpec& spec, bool exact = false, bool has_weight = true, std::size_t most = 100) {
  Kernel kernel = matmul_kernel(spec);
  if (!has_weight) kernel = make_kernel(kernel.body, std::vector<bool>(kernel.body.inputs.size(), false));
  check(kernel, tolerance_of(spec, exact), exact, most);
}

MatmulSpec odd(const std::string& epilogue, DType element = DType::bf16) {
  MatmulSpec spec;
  spec.m = 523;
  spec.n = 520;
  spec.k = 328;
  spec.element = spec.out = element;
  spec.epilogue = epilogue;
  return spec;
}

TEST_F(GpuCudaWarps, TilesAgreeWithTheInterpreter) {
  check(odd("gelu"));
  MatmulSpec few = odd("residual");
  few.m = 19;
  check(few);
}

TEST_F(GpuCudaWarps, EpiloguesAgreeWithTheInterpreter) {
  for (const char* epilogue : {"none", "bias", "relu", "gelu_tanh", "row", "residual", "scale"})
    check(odd(epilogue), false, true, 2);
}

TEST_F(GpuCudaWarps, TypesAgreeWithTheInterpreter) {
  for (const DType element : {DType::f16, DType::bf16, DType::f32}) {
    for (const DType out : {DType::f16, DType::f32}) {
      MatmulSpec spec = odd("gelu_tanh", element);
      spec.out = out;
      check(spec, false, true, 3);
    }
  }
}

TEST_F(GpuCudaWarps, OperandsMayLieEitherWay) {
  for (const DType element : {DType::bf16, DType::f32}) {
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) {
        MatmulSpec spec = odd("bias", element);
        spec.a_transposed = a_transposed;
        spec.b_transposed = b_transposed;
        spec.m = 520;
        check(spec, element == DType::f32, false, 4);
      }
    }
  }
}

/// Rows that begin at multiples of 8, 4 and 2 bytes.
TEST_F(GpuCudaWarps, OddRowsAgreeWithTheInterpreter) {
  for (const std::int64_t k : {196, 330, 327}) {
    for (const bool transposed : {false, true}) {
      MatmulSpec spec = odd("bias");
      spec.k = k;
      spec.m = transposed ? k + 2 : 523;
      spec.n = transposed ? k - 2 : 501;
      spec.a_transposed = transposed;
      spec.b_transposed = !transposed;
      spec.batch = 2;
      spec.b_batched = true;
      check(spec, false, false, 3);
      spec.element = spec.out = DType::f32;
      check(spec, true, false, 2);
    }
  }
}

TEST_F(GpuCudaWarps, BatchesAgreeWithTheInterpreter) {
  for (const bool b_batched : {false, true}) {
    for (const char* epilogue : {"none", "bias", "residual", "row"}) {
      MatmulSpec spec = odd(epilogue);
      spec.batch = 5;
      spec.m = 136;
      spec.n = 200;
      spec.k = 72;
      spec.b_batched = b_batched;
      check(spec, false, true, 3);
    }
  }
}

TEST_F(GpuCudaWarps, HeadsAreReadWhereTheyLie) {
  for (const bool of_values : {false, true}) {
    check(heads_kernel(DType::bf16, of_values), 2e-2, false, 3);
    check(heads_kernel(DType::f32, of_values), 1e-5, true, 2);
  }
}

/// Sums of tensor cores drop bits, more the deeper the product; these must not.
TEST_F(GpuCudaWarps, ExactProductsAreThoseOfFloats) {
  check(odd("gelu", DType::f32), true);
  MatmulSpec deep = odd("none", DType::f32);
  deep.m = deep.n = 96;
  deep.k = 8192;
  check(deep, true);
}

/// Products that are all a little too small add up over the layers of a network.
TEST_F(GpuCudaWarps, ExactProductsLeanToNoSide) {
  MatmulSpec spec = odd("none", DType::f32);
  spec.k = 3072;
  const Kernel kernel = matmul_kernel(spec);
  const Reading<CudaMatmulProblem> reading = read_cuda_matmul(kernel);
  const std::vector<Tensor> inputs = normal_inputs(kernel, 7);
  const Tensor reference = interpret(kernel.body, inputs).at(0);
  const CudaTemplate text =
      make_cuda_warps(reading.problem, cuda_warps_choices(reading.problem, true, sample_card())[0]);
  const Tensor result = run_template(text, kernel, inputs);
  double along = 0, norm = 0;
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const double r = reference.as_double(i);
    along += (result.as_double(i) - r) * r;
    norm += r * r;
  }
  EXPECT_LT(std::abs(along / norm), 1e-7);
}

/// What is cut of an infinity is NaN, which must not reach the sum.
TEST_F(GpuCudaWarps, SpecialFloatsSurviveExactProducts) {
  const Kernel kernel = matmul_kernel(odd("none", DType::f32));
  const Reading<CudaMatmulProblem> reading = read_cuda_matmul(kernel);
  std::vector<Tensor> inputs = normal_inputs(kernel, 7);
  inputs[0].set_double(2 * reading.problem.k, std::numeric_limits<double>::infinity());
  inputs[0].set_double(5 * reading.problem.k + 1, std::numeric_limits<double>::quiet_NaN());
  const Tensor reference = interpret(kernel.body, inputs).at(0);
  const CudaTemplate text =
      make_cuda_warps(reading.problem, cuda_warps_choices(reading.problem, true, sample_card())[0]);
  const Tensor result = run_template(text, kernel, inputs);
  for (std::int64_t i = 0; i < 8 * reading.problem.n; ++i) {
    const double actual = result.as_double(i), expected = reference.as_double(i);
    EXPECT_TRUE(std::isfinite(expected) ? std::isfinite(actual)
                : std::isnan(expected)  ? std::isnan(actual)
                                        : actual == expected)
        << i << ": " << actual << ", not " << expected;
  }
}

void check_conv(const ConvSpec& spec, bool exact = false, std::size_t most = 3) {
  const ConvCase one(spec, "cuda_warps_conv");
  const Reading<CudaMatmulProblem> reading = read_cuda_conv(one.kernel);
  ASSERT_EQ(reading.refusal, "") << one.kernel.text;
  std::vector<CudaWarpsChoice> choices = cuda_warps_choices(reading.problem, exact, sample_card());
  ASSERT_FALSE(choices.empty());
  choices.resize(std::min(most, choices.size()));
  for (const CudaWarpsChoice& choice : choices) {
    SCOPED_TRACE(choice.to_string() + " of\n" + one.kernel.text);
    const CudaTemplate text = make_cuda_warps(reading.problem, choice);
    EXPECT_LT(error_of(run_template(text, one.kernel, one.inputs), one.reference),
              exact ? 1e-6 : one.tolerance);
  }
}

ConvSpec taps(std::int64_t count, std::int64_t stride, DType element = DType::bf16) {
  ConvSpec spec;
  spec.taps_y = spec.taps_x = count;
  spec.stride = stride;
  spec.element = element;
  const std::int64_t pad = count / 2;
  spec.pads = {pad, pad, pad, pad};
  return spec;
}

TEST_F(GpuCudaWarps, ConvolutionsAgreeWithTheInterpreter) {
  for (const auto& [count, stride] : {std::pair{3, 1}, {3, 2}, {1, 1}, {1, 2}, {7, 2}})
    check_conv(taps(count, stride), false, 100);
  for (const char* epilogue : {"none", "scale", "residual"}) {
    ConvSpec spec = taps(3, 1);
    spec.filters = 136;
    spec.epilogue = epilogue;
    check_conv(spec);
  }
  ConvSpec apart = taps(3, 3, DType::f16);
  apart.dilation = 2;
  apart.channels = 24;
  apart.pads = {1, 2, 2, 0};
  check_conv(apart);
}

TEST_F(GpuCudaWarps, ConvolutionsOfSomeChannelsAgreeWithTheInterpreter) {
  for (ConvSpec spec : {taps(3, 1), taps(1, 1)}) {
    spec.channels = 40;
    spec.channels_beside = 12;
    check_conv(spec);
  }
}

TEST_F(GpuCudaWarps, ConvolutionsOfWideGroupsAgreeWithTheInterpreter) {
  for (const auto& [count, channels, filters] :
       {std::tuple{3, 24, 40}, {7, 48, 24}, {1, 40, 136}, {3, 96, 72}}) {
    ConvSpec spec = taps(count, 1);
    spec.groups = 3;
    spec.channels = std::int64_t{3} * channels;
    spec.filters = std::int64_t{3} * filters;
    spec.epilogue = "residual";
    check_conv(spec, false, 100);
    spec.element = DType::f32;
    check_conv(spec, true);
  }
}

TEST_F(GpuCudaWarps, ConvolutionsOfVolumesAgreeWithTheInterpreter) {
  for (const auto& [count, stride] : {std::pair{3, 1}, {3, 2}, {1, 1}}) {
    ConvSpec spec = taps(count, stride);
    spec.frames = 5;
    spec.stride_z = 2;
    spec.pads_z = {2, 0};
    spec.epilogue = "residual";
    check_conv(spec, false, 100);
    spec.dilation_z = 2;
    spec.channels = 12;
    check_conv(spec);
    spec.element = DType::f32;
    check_conv(spec, true);
  }
}

/// Pixels that lie 8 bytes apart, and wider pads than tensor maps allow.
TEST_F(GpuCudaWarps, FewChannelsAndWidePadsAgreeWithTheInterpreter) {
  ConvSpec few = taps(3, 1);
  few.channels = 4;
  check_conv(few);
  few.channels = 12;
  few.pads = {140, 0, 0, 140};
  check_conv(few);
}

TEST_F(GpuCudaWarps, ExactConvolutionsAgreeWithTheInterpreter) {
  for (const auto& [count, stride] : {std::pair{1, 1}, {3, 1}, {3, 2}}) {
    ConvSpec spec = taps(count, stride, DType::f32);
    spec.channels = 36;
    spec.filters = 136;
    spec.epilogue = "residual";
    check_conv(spec, true, 100);
    check_conv(spec);
  }
}

}  // namespace
}  // namespace sylvite::cuda_warps_test
