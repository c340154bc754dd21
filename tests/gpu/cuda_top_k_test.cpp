#include "schedules/cuda/top_k.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/norm_kernels.h"
#include "tests/support/top_k_kernels.h"

// Every choice of the template of first elements against the reference interpreter, to the bit of what compares equal.

namespace sylvite {
namespace {

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

class GpuCudaTopK : public GpuTest, public testing::WithParamInterface<const char*> {};

TEST_P(GpuCudaTopK, IsTheInterpreters) {
  const Kernel kernel = norm_kernel(GetParam());
  const Reading<CudaTopKProblem> reading = read_cuda_top_k(kernel);
  ASSERT_EQ(reading.refusal, "");
  for (const std::vector<Tensor>& inputs : {normal_inputs(kernel, 3), alike_inputs(kernel)}) {
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
}  // namespace sylvite
