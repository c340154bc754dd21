#include "schedules/cuda/operands.h"
#include "schedules/cuda/top_k.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/norm_kernels.h"
#include "tests/support/top_k_kernels.h"

// Every choice of the template of first elements against the reference interpreter, to the bit of what compares equal.

namespace sylvite::cuda_top_k_test {
namespace {

/// Whole numbers of all digits of their type, or few that are `alike`.
std::vector<Tensor> whole_inputs(const Kernel& kernel, bool alike) {
  const TensorType& type = kernel.body.type(kernel.body.inputs[0]);
  std::mt19937_64 random(5);
  Tensor x(type.dtype, type.dims());
  const auto beyond = static_cast<unsigned>(64 - 8 * dtype_size(type.dtype));
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const std::uint64_t bits = random();
    const bool is_signed = type.dtype != DType::u8;
    const std::int64_t any =
        is_signed ? static_cast<std::int64_t>(bits) >> beyond : static_cast<std::int64_t>(bits >> beyond);
    x.set_int64(i, alike ? static_cast<std::int64_t>(bits % 9) - (is_signed ? 4 : 0) : any);
  }
  return {x};
}

/// Numbers of which many are alike, with NaN, infinities and zeros of both signs among them.
std::vector<Tensor> alike_inputs(const Kernel& kernel) {
  std::vector<Tensor> inputs = normal_inputs(kernel, 5);
  Tensor& x = inputs[0];
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, std::round(8 * x.as_double(i)) / 8);
  for (std::int64_t i = 3; i < x.size(); i += 97) x.set_double(i, i % 2 == 0 ? -0.0 : 0.0);
  for (std::int64_t i = 5; i < x.size(); i += 1009) x.set_double(i, std::numeric_limits<double>::infinity());
  for (std::int64_t i = 7; i < x.size(); i += 2003) x.set_double(i, std::nan(""));
  return inputs;
}

/// Numbers whose largest lie together, so that bounds of groups say little.
std::vector<Tensor> crowded_inputs(const Kernel& kernel, std::int64_t count) {
  std::vector<Tensor> inputs = normal_inputs(kernel, 9);
  Tensor& x = inputs[0];
  for (std::int64_t i = 0; i < x.size(); ++i)
    if (i % count % 1024 < 16) x.set_double(i, x.as_double(i) + 20);
  return inputs;
}

class GpuCudaTopK : public GpuTest, public testing::WithParamInterface<const char*> {};

TEST_P(GpuCudaTopK, IsTheInterpreters) {
  const Kernel kernel = norm_kernel(GetParam());
  const Reading<CudaTopKProblem> reading = read_cuda_top_k(kernel);
  ASSERT_EQ(reading.refusal, "");
  const bool is_float = is_float_storage(reading.problem.element);
  std::vector<std::vector<Tensor>> all;
  if (is_float)
    all = {normal_inputs(kernel, 3), alike_inputs(kernel), crowded_inputs(kernel, reading.problem.count)};
  else
    all = {whole_inputs(kernel, false), whole_inputs(kernel, true)};
  for (const std::vector<Tensor>& inputs : all) {
    const std::vector<Tensor> references = interpret(kernel.body, inputs);
    for (const CudaTopKChoice& choice : cuda_top_k_choices(reading.problem)) {
      const std::vector<Tensor> results =
          run_template_outputs(make_cuda_top_k(reading.problem, choice), kernel, inputs, 2);
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < references[0].size(); ++i) {
        const double value = results[0].as_double(i), expected = references[0].as_double(i);
        const bool same = value == expected || (std::isnan(value) && std::isnan(expected));
        if (!same || results[1].as_int64(i) != references[1].as_int64(i)) ++wrong;
      }
      EXPECT_EQ(wrong, 0) << choice.threads << " threads, " << choice.rows << " rows";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, GpuCudaTopK, testing::ValuesIn(top_k_texts));

}  // namespace
}  // namespace sylvite::cuda_top_k_test
