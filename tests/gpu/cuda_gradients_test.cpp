#include <limits>

#include "schedules/cuda/attention_gradient.h"
#include "schedules/cuda/depthwise_gradient.h"
#include "schedules/cuda/grouped.h"
#include "schedules/cuda/line_gradient.h"
#include "schedules/cuda/matmul.h"
#include "schedules/cuda/pool_gradient.h"
#include "schedules/cuda/scatter_rows.h"
#include "schedules/packings.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/gradient_kernels.h"
#include "tests/support/sample_card.h"

// Every choice of the templates of gradients against the reference interpreter.

namespace sylvite::cuda_gradients_test {
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

/// Of a template: read(kernel) gives its problem, choices(problem) what may be made of it, make(problem, choice) makes it, and
/// tolerance(problem) is how far results may be off.
template <typename Read, typename Choices, typename Make, typename Tolerance>
void expect_agrees(const Case& one, const Read& read, const Choices& choices, const Make& make,
                   const Tolerance& tolerance) {
  const auto reading = read(one.kernel);
  ASSERT_EQ(reading.refusal, "") << one.kernel.text;
  const auto found = choices(reading.problem);
  ASSERT_FALSE(found.empty());
  for (std::size_t i = 0; i < found.size(); ++i)
    one.check(make(reading.problem, found[i]), i, tolerance(reading.problem));
}

/// For results of f32 and others.
template <typename Problem>
double by_type(const Problem& problem, double narrow) {
  return problem.out == DType::f32 ? 1e-4 : narrow;
}

TEST_F(GpuCudaGradients, OfFiltersAgreeWithTheInterpreter) {
  using Problem = CudaMatmulProblem;
  for (const char* text : filter_gradient_texts)
    expect_agrees(
        Case(text), read_cuda_filter_gradient,
        [](const Problem& problem) { return cuda_filter_gradient_choices(problem, small_card()); },
        [](const Problem& problem, const CudaMatmulChoice& choice) {
          return make_cuda_matmul(problem, choice, small_card());
        },
        [](const Problem& problem) { return by_type(problem, 1e-2); });
}

TEST_F(GpuCudaGradients, OfLinesAgreeWithTheInterpreter) {
  for (const char* text : line_gradient_texts)
    expect_agrees(Case(text), read_cuda_line_gradient, cuda_line_gradient_choices, make_cuda_line_gradient,
                  [](const auto&) { return 1e-4; });
}

TEST_F(GpuCudaGradients, OfDepthwiseFiltersAgreeWithTheInterpreter) {
  for (const char* text : depthwise_gradient_texts)
    expect_agrees(Case(text), read_cuda_depthwise_gradient, cuda_depthwise_gradient_choices,
                  make_cuda_depthwise_gradient, [](const auto&) { return 1e-4; });
}

TEST_F(GpuCudaGradients, OfPoolingsAgreeWithTheInterpreter) {
  for (const char* text : pool_gradient_texts)
    expect_agrees(Case(text), read_cuda_pool_gradient, cuda_pool_gradient_choices, make_cuda_pool_gradient,
                  [](const auto&) { return 1e-2; });
}

TEST_F(GpuCudaGradients, OfTablesAgreeWithTheInterpreter) {
  // The interpreter rounds to the type at every step.
  for (const char* text : scatter_rows_texts)
    expect_agrees(Case(text), read_cuda_scatter_rows, cuda_scatter_rows_choices, make_cuda_scatter_rows,
                  [](const CudaScatterRowsProblem& problem) { return by_type(problem, 0.1); });
}

/// Sums as large as they are in use, so that weights are at most 1.
std::vector<Tensor> with_sums(const Kernel&, std::vector<Tensor> inputs) {
  if (inputs.size() < 6) return inputs;
  for (std::int64_t i = 0; i < inputs[4].size(); ++i) inputs[4].set_double(i, 12 + inputs[4].as_double(i));
  for (Tensor* tensor : {&inputs[0], &inputs[1]})
    for (std::int64_t i = 0; i < tensor->size(); ++i) tensor->set_double(i, tensor->as_double(i) / 2);
  return inputs;
}

std::vector<CudaAttentionGradientChoice> all_attention_choices(const CudaAttentionGradientProblem& problem) {
  return cuda_attention_gradient_choices(problem, true);
}

TEST_F(GpuCudaGradients, OfAttentionAgreeWithTheInterpreter) {
  for (const char* text : attention_gradient_texts)
    expect_agrees(Case(text, with_sums), read_cuda_attention_gradient, all_attention_choices,
                  make_cuda_attention_gradient, [](const CudaAttentionGradientProblem& problem) {
                    return problem.of == AttentionGradientOf::sums ? 1e-4 : 1e-2;
                  });
}

/// A query sees a few keys ahead of it.
std::vector<Tensor> with_block_mask(const Kernel& kernel, std::vector<Tensor> inputs) {
  inputs = with_sums(kernel, std::move(inputs));
  constexpr std::int64_t ahead = 10;
  Tensor& mask = inputs.back();
  const std::int64_t keys = mask.dims().back(), queries = mask.dims()[mask.dims().size() - 2];
  for (std::int64_t i = 0; i < mask.size(); ++i) {
    const bool is_seen = i % keys <= i / keys % queries + ahead;
    const double added = is_seen ? 0 : -std::numeric_limits<double>::infinity();
    mask.set_double(i, mask.dtype() == DType::boolean ? static_cast<double>(is_seen) : added);
  }
  return inputs;
}

TEST_F(GpuCudaGradients, OfAttentionLeaveOutWhatIsHidden) {
  for (const char* text : block_mask_texts)
    expect_agrees(Case(text, with_block_mask), read_cuda_attention_gradient, all_attention_choices,
                  make_cuda_attention_gradient, [](const CudaAttentionGradientProblem& problem) {
                    return problem.of == AttentionGradientOf::sums ? 1e-4 : 1e-2;
                  });
}

TEST_F(GpuCudaGradients, DepthwiseFiltersMayBeValues) {
  const Case one(
      R"(graph g(%x: bf16[2,40,17,15]@c40, %f: bf16[40,1,3,3]) { %v: bf16[2,40,9,8]@c40 = conv(%x, %f) {strides=[2,2], pads=[1,1,1,1], dilations=[1,1], groups=40} return %v })");
  expect_agrees(one, read_cuda_depthwise, cuda_depthwise_choices, make_cuda_depthwise,
                [](const auto&) { return 1e-2; });
}

}  // namespace
}  // namespace sylvite::cuda_gradients_test
