#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "schedules/cuda/attention_warps.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/attention_kernels.h"
#include "tests/support/sample_card.h"

// Every variant of the attention template against the reference interpreter, over extents that end inside a
// block; the grid is small, so that blocks take several tiles in turn, and each runs three times in a row.

namespace sylvite::cuda_attention_test {
namespace {

using GpuCudaAttention = GpuTest;

double most_error(DType element) {
  return element == DType::bf16 ? 1e-2 : element == DType::f16 ? 2e-3 : 2e-6;
}

/// With at most so many of the choices.
void check(const AttentionSpec& spec, std::size_t most = 100) {
  const Kernel kernel = attention_kernel(spec);
  const Reading<CudaAttentionProblem> reading = read_cuda_attention(kernel);
  ASSERT_EQ(reading.refusal, "") << kernel.text;
  const std::vector<Tensor> inputs = normal_inputs(kernel, 7);
  const Tensor reference = interpret(kernel.body, inputs).at(0);
  const Card card = small_card(3);
  std::vector<CudaAttentionChoice> choices = cuda_attention_choices(reading.problem, card);
  choices.resize(std::min(most, choices.size()));
  for (const CudaAttentionChoice& choice : choices) {
    SCOPED_TRACE(choice.to_string() + " of\n" + kernel.text);
    const CudaTemplate text = make_cuda_attention(reading.problem, choice, card);
    EXPECT_LT(error_of(run_template(text, kernel, inputs, 3), reference), most_error(spec.element));
  }
  if (spec.element == DType::f32) return;
  std::vector<CudaAttentionWarpsChoice> warps = attention_warps_choices(reading.problem, card);
  ASSERT_FALSE(warps.empty());
  warps.resize(std::min<std::size_t>(4, warps.size()));
  for (const CudaAttentionWarpsChoice& choice : warps) {
    SCOPED_TRACE(choice.to_string() + " of\n" + kernel.text);
    const CudaTemplate text = make_attention_warps(reading.problem, choice);
    EXPECT_LT(error_of(run_template(text, kernel, inputs, 2), reference), most_error(spec.element));
  }
}

AttentionSpec rows(std::int64_t queries, std::int64_t keys, bool causal, std::int64_t depth = 64) {
  AttentionSpec spec;
  spec.queries = queries;
  spec.keys = keys;
  spec.causal = causal;
  spec.depth = depth;
  return spec;
}

TEST_F(GpuCudaAttention, AgreesWithTheInterpreter) {
  for (const bool causal : {false, true}) {
    for (const auto& [queries, keys] :
         {std::pair{1, 1}, {128, 128}, {197, 197}, {100, 333}, {333, 100}, {517, 517}, {64, 640}}) {
      check(rows(queries, keys, causal));
    }
  }
}

TEST_F(GpuCudaAttention, WideHeadsAgreeWithTheInterpreter) {
  for (const bool causal : {false, true})
    for (const std::int64_t depth : {128, 80, 40}) check(rows(300, 300, causal, depth));
}

TEST_F(GpuCudaAttention, HalfFloatsAgreeWithTheInterpreter) {
  AttentionSpec spec = rows(150, 170, true);
  spec.element = DType::f16;
  check(spec);
}

AttentionSpec floats(std::int64_t queries, std::int64_t keys, bool causal, std::int64_t depth = 64) {
  AttentionSpec spec = rows(queries, keys, causal, depth);
  spec.element = spec.mask_type = DType::f32;
  return spec;
}

TEST_F(GpuCudaAttention, FloatsAgreeWithTheInterpreter) {
  check(floats(197, 197, false));
  check(floats(130, 130, true));
}

TEST_F(GpuCudaAttention, FloatsOfAllExtentsAgree) {
  for (const bool causal : {false, true}) {
    for (const auto& [queries, keys] : {std::pair{1, 1}, {128, 128}, {100, 333}, {333, 100}})
      check(floats(queries, keys, causal), 1);
    for (const std::int64_t depth : {40, 128}) check(floats(150, 170, causal, depth), 1);
  }
}

/// Sums of tensor cores drop bits, more the more keys there are; these must not.
TEST_F(GpuCudaAttention, FloatsOfManyKeysAgree) {
  check(floats(70, 4100, false), 1);
  check(floats(70, 4100, false, 128), 1);
}

/// What rounding leaves of an infinity is NaN, which must not reach the sums.
TEST_F(GpuCudaAttention, SpecialFloatsAgree) {
  const Kernel kernel = attention_kernel(floats(70, 70, false));
  const Reading<CudaAttentionProblem> reading = read_cuda_attention(kernel);
  ASSERT_EQ(reading.refusal, "");
  std::vector<Tensor> inputs = normal_inputs(kernel, 7);
  constexpr std::int64_t head = std::int64_t{70} * 64;
  inputs[2].set_double(5, std::numeric_limits<double>::infinity());           // a value of the first head
  inputs[0].set_double(head + 64, std::numeric_limits<double>::quiet_NaN());  // a query of the second
  inputs[1].set_double(2 * head, -std::numeric_limits<double>::infinity());   // a key of the third
  const Tensor reference = interpret(kernel.body, inputs).at(0);
  const Card card = sample_card();
  const CudaTemplate text =
      make_cuda_attention(reading.problem, cuda_attention_choices(reading.problem, card)[0], card);
  const Tensor result = run_template(text, kernel, inputs);
  for (std::int64_t i = 0; i < 3 * head; ++i) {
    const double actual = result.as_double(i), expected = reference.as_double(i);
    ASSERT_TRUE(std::isfinite(expected) ? std::abs(actual - expected) < 1e-5
                : std::isnan(expected)  ? std::isnan(actual)
                                        : actual == expected)
        << i << ": " << actual << ", not " << expected;
  }
}

TEST_F(GpuCudaAttention, MasksAndStridesOfFloatsAgree) {
  AttentionSpec spec = floats(130, 130, false);
  spec.fused = true;
  check(spec, 1);
  spec.mask = {2, 1, 130, 130};
  check(spec, 1);
  spec.mask = {2, 1, 1, 130};
  spec.mask_type = DType::boolean;
  spec.rows_of_heads = true;
  spec.fused = false;
  check(spec, 1);
}

TEST_F(GpuCudaAttention, ReadsHeadsWhereTheyLie) {
  AttentionSpec spec = rows(130, 130, false);
  spec.rows_of_heads = true;
  check(spec);
  spec.rows_of_heads = false;
  spec.fused = true;
  check(spec);
}

TEST_F(GpuCudaAttention, ValuesMayBeWiderOrNarrowerThanKeys) {
  for (const auto& [depth, value_depth] : {std::pair{16, 32}, {64, 128}, {96, 40}}) {
    AttentionSpec spec = rows(197, 130, false, depth);
    spec.value_depth = value_depth;
    check(spec);
    spec.rows_of_heads = true;
    check(spec);
  }
}

TEST_F(GpuCudaAttention, HeadsThatShareKeysAgree) {
  for (const DType element : {DType::bf16, DType::f32}) {
    for (const std::int64_t groups : {1, 2}) {
      for (const bool causal : {false, true}) {
        AttentionSpec spec = rows(197, 330, causal);
        spec.element = spec.mask_type = element;
        spec.heads = 6;
        spec.groups = groups;
        check(spec, element == DType::f32 ? 1 : 100);
        spec.keys = spec.queries;
        spec.rows_of_heads = true;
        check(spec, 2);
        spec.mask = groups == 1 ? Dims{2, 6, 197, 197} : Dims{2, 2, 3, 197, 197};
        check(spec, 2);
      }
    }
  }
}

TEST_F(GpuCudaAttention, MasksOfWindowsAgreeWithTheInterpreter) {
  AttentionSpec spec = rows(49, 49, false, 32);
  spec.batch = 4;
  spec.images = 2;
  for (const Dims& mask : {Dims{4, 3, 49, 49}, Dims{4, 1, 49, 49}, Dims{3, 49, 49}, Dims{2, 4, 1, 1, 49},
                           Dims{2, 1, 3, 49, 49}, Dims{2, 1, 1, 1, 49}}) {
    spec.mask = mask;
    check(spec);
  }
}

TEST_F(GpuCudaAttention, MasksAgreeWithTheInterpreter) {
  AttentionSpec spec = rows(197, 197, false);
  for (const Dims& mask : {Dims{2, 1, 1, 197}, Dims{2, 1, 197, 197}, Dims{197}, Dims{1, 3, 197, 197}}) {
    spec.mask = mask;
    check(spec);
  }
  spec = rows(300, 300, true, 80);
  spec.mask = {2, 1, 1, 300};
  for (const DType dtype : {DType::bf16, DType::boolean}) {
    spec.mask_type = dtype;
    spec.causal = dtype != DType::boolean;  // every row must see some key
    check(spec);
  }
}

}  // namespace
}  // namespace sylvite::cuda_attention_test
