#include "lowering/plan/open_kernel.h"
#include "schedules/cuda/columns.h"
#include "schedules/packings.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/column_fold_kernels.h"
#include "tests/support/norm_kernels.h"

// Every choice of the column template against the reference interpreter.

namespace sylvite::cuda_columns_test {
namespace {

class GpuCudaColumns : public GpuTest {};
class GpuCudaColumnsKernels : public GpuTest, public testing::WithParamInterface<const char*> {};

TEST_P(GpuCudaColumnsKernels, AgreesWithTheInterpreter) {
  const Kernel kernel = norm_kernel(GetParam());
  const Reading<CudaColumnsProblem> reading = read_cuda_columns(kernel);
  ASSERT_EQ(reading.refusal, "");
  std::vector<Tensor> inputs = normal_inputs(kernel, 3);
  const Tensor reference =
      pack(interpret(kernel.body, inputs).at(0), layout_packing(kernel.body.type(kernel.body.outputs[0])));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    inputs[i] = pack(inputs[i], layout_packing(kernel.body.type(kernel.body.inputs[i])));
  const double allowed = kernel.body.type(kernel.body.inputs[0]).dtype == DType::f32 ? 1e-5 : 1e-2;
  for (const CudaColumnsChoice& choice : cuda_columns_choices(reading.problem)) {
    const CudaTemplate text = make_cuda_columns(reading.problem, choice);
    const Tensor result = run_template(text, kernel, inputs, 2);
    EXPECT_LT(error_of(result, reference), allowed) << choice.to_string();
    const Tensor again = run_template(text, kernel, inputs);
    EXPECT_EQ(error_of(again, result), 0) << choice.to_string() << " gives another result each time";
  }
}

INSTANTIATE_TEST_SUITE_P(Columns, GpuCudaColumnsKernels, testing::ValuesIn(column_texts));
INSTANTIATE_TEST_SUITE_P(Masked, GpuCudaColumnsKernels, testing::ValuesIn(masked_column_texts));
INSTANTIATE_TEST_SUITE_P(Pixels, GpuCudaColumnsKernels, testing::ValuesIn(pixel_texts));

/// All results of every choice.
void expect_agrees(const Kernel& kernel) {
  const Reading<CudaColumnsProblem> reading = read_cuda_columns(kernel);
  ASSERT_EQ(reading.refusal, "");
  std::vector<Tensor> inputs = normal_inputs(kernel, 3);
  const std::vector<Tensor> wanted = interpret(kernel.body, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    inputs[i] = pack(inputs[i], layout_packing(kernel.body.type(kernel.body.inputs[i])));
  for (const CudaColumnsChoice& choice : cuda_columns_choices(reading.problem)) {
    const std::vector<Tensor> results =
        run_template_outputs(make_cuda_columns(reading.problem, choice), kernel, inputs, 2);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const TensorType& type = kernel.body.type(kernel.body.outputs[i]);
      const bool is_narrow = is_half(type.dtype);
      EXPECT_LT(error_of(results[i], pack(wanted[i], layout_packing(type))), is_narrow ? 1e-2 : 1e-4)
          << choice.to_string() << " result " << i;
    }
  }
}

class GpuCudaColumnFolds : public GpuTest, public testing::WithParamInterface<const char*> {};
TEST_P(GpuCudaColumnFolds, AgreeWithTheInterpreter) {
  expect_agrees(norm_kernel(GetParam()));
}
INSTANTIATE_TEST_SUITE_P(Twins, GpuCudaColumnFolds, testing::ValuesIn(twin_column_texts));
INSTANTIATE_TEST_SUITE_P(EveryKind, GpuCudaColumnFolds, testing::ValuesIn(column_fold_texts));

class GpuOpenColumnFolds : public GpuTest {};

/// Columns of runs that are longer and shorter than those the text is made for.
TEST_F(GpuOpenColumnFolds, FoldColumnsOfAnyLength) {
  const auto folds = [](std::int64_t rows) {
    return norm_kernel(fmt::format(
        "graph g(%a: f32[5,{0},40]) {{ %m: f32[5,1,40] = reduce_max(%a) {{axes=[1], keepdims=1}}"
        " %d: f32[5,{0},40] = sub(%a, %m) %e: f32[5,{0},40] = exp(%d)"
        " %p: i64[5,40] = arg_min(%a) {{axis=1, keepdims=0, select_last=1}}"
        " %s: f32[5,1,40] = reduce_sum(%e) {{axes=[1], keepdims=1}} %o: f32[5,{0},40] = div(%e, %s)"
        " return %o, %p }}",
        rows));
  };
  const Kernel open = generalize(folds(100), folds(81), Sharing::on_device).value();
  for (const std::int64_t rows : {100, 7, 8, 81, 5025}) {
    SCOPED_TRACE(rows);
    expect_agrees(as_case(open, folds(rows)).value());
  }
}

TEST_F(GpuCudaColumns, KeepsSpecialValues) {
  const Kernel kernel = norm_kernel(
      "graph g(%a: f32[50,40]) { %v: f32[40] = reduce_max(%a) {axes=[0], keepdims=0} return %v }");
  std::vector<Tensor> inputs = normal_inputs(kernel, 5);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  inputs[0].set_double(45 * 40 + 1, std::numeric_limits<double>::quiet_NaN());
  inputs[0].set_double(13 * 40 + 2, infinity);
  for (std::int64_t row = 0; row < 50; ++row) inputs[0].set_double(row * 40 + 3, -infinity);
  const CudaColumnsProblem problem = read_cuda_columns(kernel).problem;
  for (const CudaColumnsChoice& choice : cuda_columns_choices(problem)) {
    const Tensor result = run_template(make_cuda_columns(problem, choice), kernel, inputs);
    EXPECT_TRUE(std::isnan(result.as_double(1)));
    EXPECT_EQ(result.as_double(2), infinity);
    EXPECT_EQ(result.as_double(3), -infinity);
  }
}

}  // namespace
}  // namespace sylvite::cuda_columns_test
