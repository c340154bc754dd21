#include "schedules/cuda/attention_gradient.h"
#include "schedules/cuda/depthwise_gradient.h"
#include "schedules/cuda/grouped.h"
#include "schedules/cuda/matmul.h"
#include "schedules/cuda/pool_gradient.h"
#include "schedules/cuda/scatter_rows.h"
#include "schedules/packings.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/gradient_kernels.h"
#include "tests/support/sample_card.h"

// Every choice of the templates of gradients against the reference interpreter.

namespace sylvite {
namespace {

using GpuCudaGradients = GpuTest;

/// Inputs as they are stored, and what must come out.
struct Case {
  Kernel kernel;
  std::vector<Tensor> inputs;
  Tensor reference;

  using Change = std::vector<Tensor> (*)(const Kernel&, std::vector<Tensor>);
  static std::vector<Tensor> same(const Kernel&, std::vector<Tensor> inputs) { return inputs; }

  explicit Case(const char* text, Change change = same)
      : kernel(norm_kernel(text)),
        inputs(change(kernel, normal_inputs(kernel, 3))),
        reference(pack(interpret(kernel.body, inputs).at(0),
                       layout_packing(kernel.body.type(kernel.body.outputs[0])))) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      inputs[i] = pack(inputs[i], layout_packing(kernel.body.type(kernel.body.inputs[i])));
  }
  void check(const CudaTemplate& text, std::size_t choice, double tolerance) const {
    SCOPED_TRACE(fmt::format("choice {} of {}", choice, kernel.text));
    const Tensor result = run_template(text, kernel, inputs, 2);
    EXPECT_LT(error_of(result, reference), tolerance);
    EXPECT_EQ(error_of(run_template(text, kernel, inputs), result), 0) << "another result each time";
  }
};

TEST_F(GpuCudaGradients, OfFiltersAgreeWithTheInterpreter) {
  for (const char* text : filter_gradient_texts) {
    const Case one(text);
    const Reading<CudaMatmulProblem> reading = read_cuda_filter_gradient(one.kernel);
    ASSERT_EQ(reading.refusal, "") << text;
    const std::vector<CudaMatmulChoice> choices = cuda_filter_gradient_choices(reading.problem, small_card());
    ASSERT_FALSE(choices.empty());
    for (std::size_t i = 0; i < choices.size(); ++i)
      one.check(make_cuda_matmul(reading.problem, choices[i], small_card()), i,
                reading.problem.out == DType::f32 ? 1e-4 : 1e-2);
  }
}

TEST_F(GpuCudaGradients, OfDepthwiseFiltersAgreeWithTheInterpreter) {
  for (const char* text : depthwise_gradient_texts) {
    const Case one(text);
    const Reading<CudaDepthwiseGradientProblem> reading = read_cuda_depthwise_gradient(one.kernel);
    ASSERT_EQ(reading.refusal, "") << text;
    const std::vector<CudaDepthwiseGradientChoice> choices = cuda_depthwise_gradient_choices(reading.problem);
    for (std::size_t i = 0; i < choices.size(); ++i)
      one.check(make_cuda_depthwise_gradient(reading.problem, choices[i]), i, 1e-4);
  }
}

TEST_F(GpuCudaGradients, OfPoolingsAgreeWithTheInterpreter) {
  for (const char* text : pool_gradient_texts) {
    const Case one(text);
    const Reading<CudaPoolGradientProblem> reading = read_cuda_pool_gradient(one.kernel);
    ASSERT_EQ(reading.refusal, "") << text;
    const std::vector<CudaPoolGradientChoice> choices = cuda_pool_gradient_choices(reading.problem);
    for (std::size_t i = 0; i < choices.size(); ++i)
      one.check(make_cuda_pool_gradient(reading.problem, choices[i]), i, 1e-2);
  }
}

TEST_F(GpuCudaGradients, OfTablesAgreeWithTheInterpreter) {
  for (const char* text : scatter_rows_texts) {
    const Case one(text);
    const Reading<CudaScatterRowsProblem> reading = read_cuda_scatter_rows(one.kernel);
    ASSERT_EQ(reading.refusal, "") << text;
    // The interpreter rounds to the type at every step.
    const double tolerance = reading.problem.out == DType::f32 ? 1e-4 : 0.1;
    const std::vector<CudaScatterRowsChoice> choices = cuda_scatter_rows_choices(reading.problem);
    for (std::size_t i = 0; i < choices.size(); ++i)
      one.check(make_cuda_scatter_rows(reading.problem, choices[i]), i, tolerance);
  }
}

/// Sums as large as they are in use, so that weights are at most 1.
std::vector<Tensor> with_sums(const Kernel&, std::vector<Tensor> inputs) {
  if (inputs.size() < 6) return inputs;
  for (std::int64_t i = 0; i < inputs[4].size(); ++i) inputs[4].set_double(i, 12 + inputs[4].as_double(i));
  for (Tensor* tensor : {&inputs[0], &inputs[1]})
    for (std::int64_t i = 0; i < tensor->size(); ++i) tensor->set_double(i, tensor->as_double(i) / 2);
  return inputs;
}

TEST_F(GpuCudaGradients, OfAttentionAgreeWithTheInterpreter) {
  for (const char* text : attention_gradient_texts) {
    const Case one(text, with_sums);
    const Reading<CudaAttentionGradientProblem> reading = read_cuda_attention_gradient(one.kernel);
    ASSERT_EQ(reading.refusal, "") << text;
    const std::vector<CudaAttentionGradientChoice> choices = cuda_attention_gradient_choices(reading.problem);
    for (std::size_t i = 0; i < choices.size(); ++i)
      one.check(make_cuda_attention_gradient(reading.problem, choices[i]), i,
                reading.problem.of == AttentionGradientOf::sums ? 1e-4 : 1e-2);
  }
}

TEST_F(GpuCudaGradients, DepthwiseFiltersMayBeValues) {
  const Case one(
      R"(graph g(%x: bf16[2,40,17,15]@c40, %f: bf16[40,1,3,3]) { %v: bf16[2,40,9,8]@c40 = conv(%x, %f) {strides=[2,2], pads=[1,1,1,1], dilations=[1,1], groups=40} return %v })");
  const Reading<CudaGroupedProblem> reading = read_cuda_depthwise(one.kernel);
  ASSERT_EQ(reading.refusal, "");
  const std::vector<CudaDepthwiseChoice> choices = cuda_depthwise_choices(reading.problem);
  for (std::size_t i = 0; i < choices.size(); ++i)
    one.check(make_cuda_depthwise(reading.problem, choices[i]), i, 1e-2);
}

}  // namespace
}  // namespace sylvite
