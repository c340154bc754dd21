#include "schedules/cuda/operands.h"
#include "schedules/cuda/scatter_folds.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/norm_kernels.h"
#include "tests/support/scatter_fold_kernels.h"

// Every choice of the template of folded values against the reference interpreter.

namespace sylvite::cuda_scatter_folds_test {
namespace {

/// Indices of all places, many of them met often, some counted from the end or out of range.
std::vector<Tensor> folded_inputs(const Kernel& kernel) {
  std::vector<Tensor> inputs = normal_inputs(kernel, 7);
  std::mt19937 random(11);
  const std::size_t indices = inputs.size() - 2;
  std::uniform_int_distribution<std::int64_t> index(-50, 70050);
  for (std::int64_t i = 0; i < inputs[indices].size(); ++i)
    inputs[indices].set_int64(i, i % 3 == 0 ? index(random) % 20 : index(random) % 3000);
  return inputs;
}

class GpuCudaScatterFolds : public GpuTest, public testing::WithParamInterface<const char*> {};

TEST_P(GpuCudaScatterFolds, IsTheInterpreters) {
  const Kernel kernel = norm_kernel(GetParam());
  const Reading<CudaScatterFoldsProblem> reading = read_cuda_scatter_folds(kernel);
  ASSERT_EQ(reading.refusal, "");
  const std::vector<Tensor> inputs = folded_inputs(kernel);
  const Tensor reference = interpret(kernel.body, inputs).at(0);
  const bool is_exact = reading.problem.reduction == "max" || reading.problem.reduction == "min" ||
                        !is_float_storage(reading.problem.element);
  for (const CudaScatterFoldsChoice& choice : cuda_scatter_folds_choices(reading.problem)) {
    const CudaTemplate made = make_cuda_scatter_folds(reading.problem, choice);
    const Tensor result = run_template(made, kernel, inputs, 2);
    EXPECT_LE(error_of(result, reference), is_exact ? 0 : 1e-5)
        << choice.own << " places, " << choice.width << " columns, " << choice.segments << " copies, "
        << choice.together << " at once";
    EXPECT_EQ(error_of(run_template(made, kernel, inputs), result), 0) << "another result each time";
  }
}

INSTANTIATE_TEST_SUITE_P(Folds, GpuCudaScatterFolds, testing::ValuesIn(scatter_fold_texts));

}  // namespace
}  // namespace sylvite::cuda_scatter_folds_test
