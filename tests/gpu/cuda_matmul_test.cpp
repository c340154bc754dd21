#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "runtime/cuda/cublaslt.h"
#include "schedules/cuda/candidate.h"
#include "schedules/cuda/forms.h"
#include "schedules/cuda/matmul.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/matmul_kernels.h"
#include "tests/support/run_kernel.h"
#include "tests/support/sample_card.h"

// Every variant of the matmul template, and cuBLASLt, against the reference interpreter. Extents are odd, so
// that tiles reach over every border, and the grid is small, so that blocks take several tiles in turn.

namespace sylvite::cuda_matmul_test {
namespace {

using GpuCudaMatmul = GpuTest;

/// f32: both operands are rounded to TF32, by 2^-12 / sqrt(3) of a number on average, unless products are exact.
double tolerance_of(const MatmulSpec& spec, bool exact) {
  if (exact) return spec.out == DType::f32 ? 1e-6 : spec.out == DType::bf16 ? 1e-2 : 1e-3;
  if (spec.element == DType::bf16 || spec.out == DType::bf16) return 1e-2;
  return spec.element == DType::f32 ? 5e-4 : 2e-3;
}

void check(const Kernel& kernel, const std::vector<CudaMatmulChoice>& choices, double tolerance,
           bool exact = false) {
  Reading<CudaMatmulProblem> reading = read_cuda_matmul(kernel);
  ASSERT_EQ(reading.refusal, "") << kernel.text;
  reading.problem.exact = exact;
  const std::vector<Tensor> inputs = normal_inputs(kernel, 7);
  const Tensor reference = interpret(kernel.body, inputs).at(0);
  for (const CudaMatmulChoice& choice : choices) {
    SCOPED_TRACE(choice.to_string() + " of\n" + kernel.text);
    const CudaTemplate text = make_cuda_matmul(reading.problem, choice, small_card());
    EXPECT_LT(error_of(run_template(text, kernel, inputs), reference), tolerance);
  }
}
void check(const MatmulSpec& spec, const std::vector<CudaMatmulChoice>& choices, bool exact = false) {
  check(matmul_kernel(spec), choices, tolerance_of(spec, exact), exact);
}

CudaMatmulChoice tile(int x, int y, bool ping_pong, int cluster_x = 1, int cluster_y = 1) {
  CudaMatmulChoice choice;
  choice.tile_x = x;
  choice.tile_y = y;
  choice.ping_pong = ping_pong;
  choice.cluster_x = cluster_x;
  choice.cluster_y = cluster_y;
  choice.group_rows = 256;
  return choice;
}
CudaMatmulChoice split(int y, int parts, bool swapped) {
  CudaMatmulChoice choice = tile(128, y, false);
  choice.split = parts;
  choice.swapped = swapped;
  return choice;
}
CudaMatmulChoice swapped(CudaMatmulChoice choice) {
  choice.swapped = true;
  return choice;
}

MatmulSpec odd(const std::string& epilogue) {
  MatmulSpec spec;
  spec.m = 523;
  spec.n = 520;
  spec.k = 328;
  spec.epilogue = epilogue;
  return spec;
}

TEST_F(GpuCudaMatmul, TilesAgreeWithTheInterpreter) {
  check(odd("gelu"),
        {tile(128, 256, false, 2, 1), tile(256, 128, false, 1, 2), tile(128, 192, true, 2, 1),
         tile(128, 192, false), tile(128, 176, true), tile(128, 160, true, 1, 2), tile(128, 128, true, 2, 1),
         tile(128, 128, false), tile(128, 96, true), tile(64, 128, true, 1, 2), tile(64, 192, true),
         tile(64, 64, true), tile(64, 8, true), tile(128, 168, true), tile(128, 64, true, 2, 2)});
}

TEST_F(GpuCudaMatmul, SplitsAgreeWithTheInterpreter) {
  check(odd("bias"), {split(128, 2, false), split(96, 4, false), split(32, 4, true), split(16, 2, true)});
  MatmulSpec deep = odd("residual");
  deep.k = 1032;
  check(deep, {split(64, 8, true), split(64, 8, false)});
}

TEST_F(GpuCudaMatmul, SwappedSidesAgreeWithTheInterpreter) {
  MatmulSpec spec = odd("residual");
  spec.m = 33;
  check(spec, {swapped(tile(128, 40, false)), swapped(tile(64, 40, true)), swapped(tile(128, 32, true)),
               split(40, 1, true), swapped(tile(64, 64, true, 2, 1))});
  check(odd("row"), {swapped(tile(128, 96, true))});
}

TEST_F(GpuCudaMatmul, EpiloguesAgreeWithTheInterpreter) {
  for (const char* epilogue : {"none", "bias", "relu", "gelu_tanh", "row", "residual", "scale"})
    check(odd(epilogue), {tile(128, 96, true), tile(128, 128, false)});
}

/// Of three by four batches, operands that are the same for neighbours, and others that come again.
TEST_F(GpuCudaMatmul, OperandsOfSomeBatchesAgreeWithTheInterpreter) {
  const Kernel kernel = kernel_of(
      "graph g(%a: bf16[3,4,131,64], %b: bf16[3,4,64,72], %c: bf16[4,131,72], %d: bf16[3,1,131,72], "
      "%e: bf16[4,1,72], %f: bf16[3,1,131,1]) {\n"
      "  %v0: bf16[3,4,131,72] = matmul(%a, %b)\n  %v1: bf16[3,4,131,72] = mul(%v0, %c)\n"
      "  %v2: bf16[3,4,131,72] = add(%v1, %d)\n  %v3: bf16[3,4,131,72] = add(%v2, %e)\n"
      "  %v4: bf16[3,4,131,72] = add(%v3, %f)\n  return %v4\n}\n");
  check(kernel, {tile(128, 128, true), tile(64, 64, true), swapped(tile(64, 96, true))}, 2e-2);
  for (const auto& [a, b] :
       {std::pair{"3,4,131,64", "4,64,72"}, {"3,1,131,64", "3,4,64,72"}, {"3,1,131,64", "4,64,72"}})
    check(kernel_of(fmt::format("graph g(%a: bf16[{}], %b: bf16[{}]) {{\n"
                                "  %v0: bf16[3,4,131,72] = matmul(%a, %b)\n  return %v0\n}}\n",
                                a, b)),
          {tile(128, 128, true), swapped(tile(64, 96, true))}, 2e-2);
}

TEST_F(GpuCudaMatmul, HeadsAreReadWhereTheyLie) {
  for (const bool of_values : {false, true})
    check(heads_kernel(DType::bf16, of_values),
          {tile(128, 128, true), tile(64, 64, true, 1, 2), swapped(tile(64, 96, true))}, 2e-2);
  check(heads_kernel(DType::f32, false), {tile(128, 128, true)}, 2e-2);
}

TEST_F(GpuCudaMatmul, PartsOfRowsAreReadWhereTheyLie) {
  for (const std::int64_t n : {520, 501}) {
    MatmulSpec spec = odd("part");
    spec.n = n;
    check(spec, {tile(128, 96, true), swapped(tile(128, 64, false))});
    spec.batch = 3;
    check(spec, {tile(128, 128, true)});
  }
}

TEST_F(GpuCudaMatmul, TypesAgreeWithTheInterpreter) {
  for (const DType element : {DType::f16, DType::bf16, DType::f32}) {
    for (const DType out : {DType::f16, DType::f32}) {
      MatmulSpec spec = odd("gelu_tanh");
      spec.element = element;
      spec.out = out;
      check(spec, {tile(128, 128, true), swapped(tile(128, 64, false)), split(64, 2, false)});
    }
  }
}

MatmulSpec floats(const std::string& epilogue, std::int64_t n = 520) {
  MatmulSpec spec = odd(epilogue);
  spec.element = spec.out = DType::f32;
  spec.n = n;
  return spec;
}

/// In boxes of every width.
TEST_F(GpuCudaMatmul, FloatsAgreeWithTheInterpreter) {
  check(floats("gelu"), {tile(128, 128, true), tile(64, 176, true), tile(128, 104, false),
                         tile(128, 192, true, 2, 1), tile(256, 128, false), split(64, 4, false)});
  for (const std::int64_t n : {518, 501})
    check(floats("bias", n), {tile(128, 128, true), tile(64, 96, true)});
}

TEST_F(GpuCudaMatmul, SwappedFloatsAgreeWithTheInterpreter) {
  check(floats("residual"), {tile(128, 96, true), swapped(tile(128, 96, true)), swapped(tile(64, 72, true)),
                             swapped(tile(128, 64, false)), split(64, 2, true)});
  check(floats("residual", 518), {swapped(tile(64, 72, true)), tile(128, 128, true)});
  check(floats("row"), {swapped(tile(128, 104, true, 1, 2))});
}

TEST_F(GpuCudaMatmul, ExactFloatsAgreeWithTheInterpreter) {
  check(floats("gelu"),
        {tile(128, 128, false), tile(128, 120, false), tile(128, 96, false, 2, 1), tile(128, 64, false, 1, 2),
         tile(64, 128, true), tile(64, 96, true, 2, 1), tile(64, 8, true), split(64, 4, false),
         split(128, 2, false)},
        true);
  check(floats("residual"),
        {swapped(tile(128, 96, false)), swapped(tile(64, 72, true)), swapped(tile(128, 40, false, 1, 2)),
         split(64, 2, true), split(32, 4, true)},
        true);
  for (const std::int64_t n : {518, 501})
    check(floats("bias", n), {tile(128, 128, false), tile(64, 96, true)}, true);
  MatmulSpec batches = floats("row");
  batches.batch = 3;
  batches.b_batched = true;
  batches.b_transposed = true;
  batches.out = DType::bf16;
  check(batches, {tile(128, 112, false), swapped(tile(128, 64, false))}, true);
}

/// Tensor cores cut what they add: over many elements that are all positive, this would show. cuBLAS's f32 has an
/// error of 7e-7 here.
TEST_F(GpuCudaMatmul, ExactFloatsOfMuchDepthAgreeWithTheInterpreter) {
  MatmulSpec spec = floats("none", 136);
  spec.m = 72;
  spec.k = 8200;
  const Kernel kernel = matmul_kernel(spec);
  Reading<CudaMatmulProblem> reading = read_cuda_matmul(kernel);
  reading.problem.exact = true;
  std::vector<Tensor> inputs = normal_inputs(kernel, 7);
  for (Tensor& input : inputs)
    for (std::int64_t i = 0; i < input.size(); ++i) input.set_double(i, std::abs(input.as_double(i)));
  const Tensor reference = interpret(kernel.body, inputs).at(0);
  for (const CudaMatmulChoice& choice :
       {tile(128, 128, false), swapped(tile(64, 72, true)), split(64, 4, false)})
    EXPECT_LT(error_of(run_template(make_cuda_matmul(reading.problem, choice, small_card()), kernel, inputs),
                       reference),
              4e-7)
        << choice.to_string();
}

TEST_F(GpuCudaMatmul, WholeNumbersStayWhole) {
  const Kernel kernel = matmul_kernel(floats("bias"));
  Reading<CudaMatmulProblem> reading = read_cuda_matmul(kernel);
  reading.problem.exact = true;
  std::vector<Tensor> inputs = normal_inputs(kernel, 7);
  for (Tensor& input : inputs)
    for (std::int64_t i = 0; i < input.size(); ++i) input.set_double(i, std::round(9 * input.as_double(i)));
  const Tensor reference = interpret(kernel.body, inputs).at(0);
  const CudaTemplate text = make_cuda_matmul(reading.problem, tile(128, 128, false), small_card());
  EXPECT_EQ(error_of(run_template(text, kernel, inputs), reference), 0);
}

TEST_F(GpuCudaMatmul, OddColumnsLeaveByRows) {
  MatmulSpec spec = odd("bias");
  spec.n = 1003;
  check(spec, {tile(128, 128, true), tile(64, 96, true), tile(128, 192, false, 2, 1), tile(64, 24, true),
               tile(256, 128, false), swapped(tile(128, 128, true))});
  spec.epilogue = "residual";
  spec.n = 1002;
  check(spec, {tile(128, 128, true), tile(128, 96, false)});
  spec.out = DType::f16;
  spec.batch = 3;
  spec.n = 21;
  check(spec, {tile(128, 128, true), tile(64, 16, true)});
}

TEST_F(GpuCudaMatmul, OperandsMayLieEitherWay) {
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      MatmulSpec spec = odd("bias");
      spec.m = 520;
      spec.a_transposed = a_transposed;
      spec.b_transposed = b_transposed;
      check(spec, {tile(128, 128, true), tile(128, 192, false), tile(128, 128, true, 2, 1),
                   tile(64, 64, true), swapped(tile(128, 128, false, 1, 2))});
    }
  }
}

TEST_F(GpuCudaMatmul, BatchesAgreeWithTheInterpreter) {
  for (const bool b_batched : {false, true}) {
    for (const char* epilogue : {"none", "bias", "residual", "row"}) {
      MatmulSpec spec = odd(epilogue);
      spec.batch = 5;
      spec.m = 136;
      spec.n = 200;
      spec.k = 72;
      spec.b_batched = b_batched;
      check(spec, {tile(128, 128, true), tile(64, 96, true, 2, 1), swapped(tile(128, 64, false))});
    }
  }
}

TEST_F(GpuCudaMatmul, CublasltAgreesWithTheInterpreter) {
  for (const char* epilogue : {"none", "bias", "relu", "gelu_tanh"}) {
    const Kernel kernel = matmul_kernel(odd(epilogue));
    const std::vector<Tensor> inputs = normal_inputs(kernel, 7);
    const Tensor reference = interpret(kernel.body, inputs).at(0);
    const std::size_t count =
        cuda::CublasLtMatmul(library_problem(read_cuda_matmul(kernel).problem)).algorithm_count();
    for (std::size_t i = 0; i < count; ++i) {
      const Candidate candidate{{cublaslt_form, {{"algorithm", static_cast<std::int64_t>(i)}}}, {}};
      const CudaTemplate product = cuda_template_of(kernel, candidate).value();
      EXPECT_LT(error_of(run_template(product, kernel, inputs), reference), 1e-2)
          << epilogue << " algorithm " << i;
    }
    const Candidate none{{cublaslt_form, {{"algorithm", 1000}}}, {}};
    EXPECT_THROW((void)run_template(cuda_template_of(kernel, none).value(), kernel, inputs),
                 UnsupportedError);
  }
}

/// A kernel that was launched early must still see all that the kernel before it wrote.
TEST_F(GpuCudaMatmul, DependentLaunchesSeeTheirPredecessors) {
  MatmulSpec spec = odd("gelu");
  spec.m = spec.n = spec.k = 256;
  const Kernel kernel = matmul_kernel(spec);
  const CudaMatmulProblem problem = read_cuda_matmul(kernel).problem;
  std::vector<Tensor> results;
  for (const bool programmatic : {false, true}) {
    CudaMatmulChoice choice = tile(64, 64, true);
    choice.programmatic = programmatic;
    const CudaTemplate text = make_cuda_matmul(problem, choice, sample_card());
    cuda::TemplateKernel compiled(cuda::compile_cuda(text));
    OnDevice device(kernel, normal_inputs(kernel, 7));
    std::vector<cuda::DevicePointer> forth = device.addresses();
    std::vector<cuda::DevicePointer> back = forth;
    std::swap(back.front(), back.back());
    const cuda::Launch launches[2] = {compiled.bind(forth), compiled.bind(back)};
    for (int i = 0; i < 41; ++i) cuda::launch(launches[i % 2], device.stream.get());
    results.push_back(device.result());
  }
  EXPECT_EQ(
      std::memcmp(results[0].data(), results[1].data(), static_cast<std::size_t>(results[0].byte_size())), 0);
}

/// Rounding to TF32 keeps infinities and NaN, on both sides, and rests of infinities are none.
TEST_F(GpuCudaMatmul, SpecialFloatsSurviveRounding) {
  MatmulSpec spec;
  spec.element = spec.out = DType::f32;
  const Kernel kernel = matmul_kernel(spec);
  Reading<CudaMatmulProblem> reading = read_cuda_matmul(kernel);
  ASSERT_EQ(reading.refusal, "") << kernel.text;
  std::vector<Tensor> inputs = normal_inputs(kernel, 7);
  const std::int64_t depth = inputs.at(0).dims().back();
  for (const std::size_t side : {0, 1}) {
    const std::int64_t row = spec.b_transposed || side == 0 ? depth : 1, step = row == 1 ? spec.n : 1;
    inputs.at(side).set_double(2 * row, std::numeric_limits<double>::infinity());
    inputs.at(side).set_double(5 * row + step, std::numeric_limits<double>::quiet_NaN());
  }
  const Tensor reference = interpret(kernel.body, inputs).at(0);
  for (const bool exact : {false, true}) {
    reading.problem.exact = exact;
    const CudaTemplate text = make_cuda_matmul(
        reading.problem, cuda_matmul_choices(reading.problem, sample_card())[0], small_card());
    const Tensor result = run_template(text, kernel, inputs);
    for (std::int64_t i = 0; i < result.size(); ++i) {
      const double actual = result.as_double(i), expected = reference.as_double(i);
      EXPECT_TRUE(std::isfinite(expected) ? std::isfinite(actual)
                  : std::isnan(expected)  ? std::isnan(actual)
                                          : actual == expected)
          << i << ": " << actual << ", not " << expected << (exact ? ", exactly" : "");
    }
  }
}

}  // namespace
}  // namespace sylvite::cuda_matmul_test
