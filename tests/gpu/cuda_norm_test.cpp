#include "schedules/cuda/norm.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/norm_kernels.h"

// Every choice of the row template against the reference interpreter, and rows with special values.

namespace sylvite::cuda_norm_test {
namespace {

class GpuCudaNorm : public GpuTest {};
class GpuCudaNormKernels : public GpuTest, public testing::WithParamInterface<const char*> {};

TEST_P(GpuCudaNormKernels, AgreesWithTheInterpreter) {
  const Kernel kernel = norm_kernel(GetParam());
  const Reading<CudaNormProblem> reading = read_cuda_norm(kernel);
  ASSERT_EQ(reading.refusal, "");
  const std::vector<Tensor> inputs = normal_inputs(kernel, 3);
  const Tensor reference = interpret(kernel.body, inputs).at(0);
  const double allowed = reference.dtype() == DType::f32 ? 1e-5 : 1e-2;
  const bool stored_narrow = kernel.body.type(kernel.body.inputs[0]).dtype != DType::f32;
  for (const CudaNormChoice& choice : cuda_norm_choices(reading.problem)) {
    const Tensor result = run_template(make_cuda_norm(reading.problem, choice), kernel, inputs, 2);
    EXPECT_LT(error_of(result, reference), stored_narrow ? 1e-2 : allowed) << choice.to_string();
  }
}

/// Rows of ordinary numbers, and with an infinity, with NaN, of -infinity alone, and all but one number.
Tensor special_rows(std::int64_t columns) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Tensor tensor(DType::f32, {6, columns});
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, static_cast<double>(i % 37) * 5 - 90);
  const auto at = [&](std::int64_t row, std::int64_t column) { return row * columns + column; };
  tensor.set_double(at(1, 3), infinity);
  tensor.set_double(at(2, columns - 1), std::numeric_limits<double>::quiet_NaN());
  for (std::int64_t i = 0; i < columns; ++i) tensor.set_double(at(3, i), -infinity);
  for (std::int64_t i = 1; i < columns; ++i) tensor.set_double(at(4, i), -infinity);
  for (std::int64_t i = 0; i < columns; i += 2) tensor.set_double(at(5, i), -infinity);
  return tensor;
}

TEST_F(GpuCudaNorm, SoftmaxTreatsSpecialValuesAsTheInterpreter) {
  for (const char* op : {"softmax", "log_softmax"}) {
    for (const int columns : {256, 333}) {
      const Kernel kernel = norm_kernel(fmt::format(
          "graph g(%a: f32[6,{0}]) {{ %v: f32[6,{0}] = {1}(%a) {{axis=1}} return %v }}", columns, op));
      const std::vector<Tensor> inputs = {special_rows(columns)};
      const Tensor reference = interpret(kernel.body, inputs).at(0);
      const CudaNormProblem problem = read_cuda_norm(kernel).problem;
      for (const CudaNormChoice& choice : cuda_norm_choices(problem)) {
        const Tensor result = run_template(make_cuda_norm(problem, choice), kernel, inputs);
        for (std::int64_t i = 0; i < result.size(); ++i) {
          const double wanted = reference.as_double(i), found = result.as_double(i);
          const bool same =
              std::isnan(wanted) ? std::isnan(found) : wanted == found || std::abs(wanted - found) < 1e-5;
          ASSERT_TRUE(same) << op << " " << choice.to_string() << " at " << i << ": " << found << ", not "
                            << wanted;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Norms, GpuCudaNormKernels, testing::ValuesIn(norm_texts));
INSTANTIATE_TEST_SUITE_P(Masked, GpuCudaNormKernels, testing::ValuesIn(masked_norm_texts));

}  // namespace
}  // namespace sylvite::cuda_norm_test
