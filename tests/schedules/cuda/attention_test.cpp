#include "schedules/cuda/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "schedules/cuda/nvrtc.h"
#include "tests/support/attention_kernels.h"
#include "tests/support/sample_card.h"

namespace sylvite::attention_test {
namespace {

using testing::HasSubstr;

CudaAttentionProblem problem_of(const AttentionSpec& spec) {
  const Reading<CudaAttentionProblem> reading = read_cuda_attention(attention_kernel(spec));
  EXPECT_EQ(reading.refusal, "");
  return reading.problem;
}

TEST(CudaAttention, ReadsHeadsWhereTheyLie) {
  AttentionSpec spec;
  spec.fused = true;
  const CudaAttentionProblem problem = problem_of(spec);  // [2, 64, 3, 3, 64]
  EXPECT_EQ(problem.k.argument, 0);
  EXPECT_EQ(problem.k.offset, 3 * 64);
  EXPECT_EQ(problem.k.row, 3 * 3 * 64);
  EXPECT_EQ(problem.k.head, 64);
  EXPECT_EQ(problem.k.batch, 64 * 3 * 3 * 64);
  EXPECT_EQ(problem.out.argument, 1);
  EXPECT_EQ(problem.out.row, 3 * 64);
  EXPECT_EQ(problem.out.head, 64);
}

TEST(CudaAttention, MasksOfWindowsRepeatForEachImage) {
  AttentionSpec spec;
  spec.batch = 5;
  spec.images = 2;
  spec.mask = {5, 1, 64, 64};
  const CudaAttentionProblem problem = problem_of(spec);
  EXPECT_EQ(problem.batch, 10);
  EXPECT_EQ(problem.heads, 3);
  EXPECT_EQ(problem.q.batch, 3 * 64 * 64);
  ASSERT_TRUE(problem.mask);
  EXPECT_EQ(problem.mask->period, 5);
  EXPECT_EQ(problem.mask->batch, 64 * 64);
  EXPECT_EQ(problem.mask->head, 0);
}

TEST(CudaAttention, NeighboursOfTheBatchShareMasks) {
  AttentionSpec spec;
  spec.batch = 5;
  spec.images = 2;
  spec.mask = {2, 1, 1, 64, 64};
  EXPECT_EQ(problem_of(spec).mask->share, 5);
  EXPECT_EQ(problem_of(spec).mask->period, 2);
  spec.mask = {2, 5, 1, 64, 64};
  EXPECT_EQ(problem_of(spec).mask->share, 1);
  EXPECT_EQ(problem_of(spec).mask->period, 10);
  spec.batch = 1;
  spec.mask = {2, 1, 1, 64, 64};
  EXPECT_EQ(problem_of(spec).mask->period, 2);
}

TEST(CudaAttention, HeadsShareKeys) {
  AttentionSpec spec;
  spec.heads = 6;
  spec.groups = 1;
  CudaAttentionProblem problem = problem_of(spec);
  EXPECT_EQ(problem.heads, 6);
  EXPECT_EQ(problem.k.share, 6);
  EXPECT_EQ(problem.k.batch, 64 * 64);
  spec.groups = 2;
  problem = problem_of(spec);
  EXPECT_EQ(problem.batch, 4);
  EXPECT_EQ(problem.heads, 3);
  EXPECT_EQ(problem.v.share, 3);
  EXPECT_EQ(problem.v.batch, 64 * 64);
  spec.rows_of_heads = true;
  problem = problem_of(spec);
  EXPECT_EQ(problem.batch, 2);
  EXPECT_EQ(problem.heads, 6);
  EXPECT_EQ(problem.q.head, 64);
  EXPECT_EQ(problem.v.share, 3);
  EXPECT_EQ(problem.v.head, 64);
  EXPECT_EQ(problem.v.row, 2 * 64);
  EXPECT_EQ(problem.out.head, 64);
}

TEST(CudaAttention, MasksOfGroupsAreThoseOfHeads) {
  AttentionSpec spec;
  spec.heads = 6;
  spec.groups = 2;
  spec.rows_of_heads = true;
  const auto head_of = [&](const Dims& mask) {
    spec.mask = mask;
    const CudaAttentionProblem problem = problem_of(spec);
    return problem.mask ? problem.mask->head : -1;
  };
  EXPECT_EQ(head_of({2, 3, 64, 64}), 64 * 64);
  EXPECT_EQ(head_of({2, 2, 3, 1, 64}), 64);
  EXPECT_EQ(head_of({2, 1, 1, 64, 64}), 0);
  EXPECT_EQ(head_of({1, 64, 64}), 0);
  for (const Dims& mask : {Dims{2, 1, 64, 64}, Dims{3, 64, 64}}) {
    spec.mask = mask;
    EXPECT_NE(read_cuda_attention(attention_kernel(spec)).refusal, "");
  }
}

TEST(CudaAttention, RefusesWithAReason) {
  AttentionSpec spec;
  spec.depth = 12;
  EXPECT_THAT(read_cuda_attention(attention_kernel(spec)).refusal, HasSubstr("12 wide"));
  spec.depth = 64;
  spec.element = DType::f64;
  EXPECT_THAT(read_cuda_attention(attention_kernel(spec)).refusal, HasSubstr("bf16"));
  spec.element = DType::bf16;
  const CudaAttentionProblem problem = problem_of(spec);
  CudaAttentionChoice choice{true, 1, 48, 1, 2};
  EXPECT_THAT(refuse_cuda_attention(problem, choice, sample_card()), HasSubstr("all keys"));
  choice = {true, 1, 208, 1, 4};
  EXPECT_THAT(refuse_cuda_attention(problem, choice, sample_card()), HasSubstr("registers"));
  EXPECT_THROW((void)make_cuda_attention(problem, choice, sample_card()), UnsupportedError);
}

TEST(CudaAttention, EveryChoiceOfferedCanBeMade) {
  for (const auto& [keys, element] : {std::pair{1, DType::bf16},
                                      {130, DType::bf16},
                                      {197, DType::bf16},
                                      {4096, DType::bf16},
                                      {1, DType::f32},
                                      {197, DType::f32}}) {
    for (const std::int64_t depth : {40, 64, 128}) {
      AttentionSpec spec;
      spec.element = element;
      spec.queries = spec.keys = keys;
      spec.depth = depth;
      const CudaAttentionProblem problem = problem_of(spec);
      const std::vector<CudaAttentionChoice> choices = cuda_attention_choices(problem, sample_card());
      EXPECT_FALSE(choices.empty());
      for (const CudaAttentionChoice& choice : choices)
        EXPECT_LE(make_cuda_attention(problem, choice, sample_card()).launch.shape.shared_bytes,
                  sample_card().shared_bytes);
    }
  }
}

TEST(CudaAttention, FloatsFillTheLastBlock) {
  AttentionSpec spec;
  spec.element = DType::f32;
  spec.queries = spec.keys = 197;
  const CudaAttentionProblem problem = problem_of(spec);
  EXPECT_EQ(cuda_attention_choices(problem, sample_card())[0].to_string(), "f32 40 x3");
  EXPECT_THAT(refuse_cuda_attention(problem, {false, 2, 64, 2, 1}, sample_card()),
              HasSubstr("one warpgroup"));
  EXPECT_THAT(refuse_cuda_attention(problem, {false, 1, 64, 2, 5}, sample_card()), HasSubstr("registers"));
  spec.queries = spec.keys = 128;
  EXPECT_EQ(cuda_attention_choices(problem_of(spec), sample_card())[0].to_string(), "f32 64 x3");
}

TEST(CudaAttention, FloatsOfWideHeadsHaveABlockAtAnyNumberOfKeys) {
  AttentionSpec spec;
  spec.element = DType::f32;
  spec.depth = 128;
  for (const std::int64_t keys : {100, 130, 333, 1500, 4096}) {
    spec.queries = spec.keys = keys;
    EXPECT_FALSE(cuda_attention_choices(problem_of(spec), sample_card()).empty()) << keys;
  }
}

TEST(CudaAttention, ShortHeadsAreTakenWhole) {
  AttentionSpec spec;
  spec.queries = spec.keys = 197;
  EXPECT_EQ(cuda_attention_choices(problem_of(spec), sample_card())[0].to_string(), "whole 208 x3");
  spec.queries = spec.keys = 512;
  EXPECT_EQ(cuda_attention_choices(problem_of(spec), sample_card())[0].to_string(), "ring 192x128 s4");
}

TEST(CudaAttention, Compiles) {
  if (!cuda::missing_nvrtc().empty()) GTEST_SKIP() << cuda::missing_nvrtc();
  for (const DType element : {DType::bf16, DType::f32}) {
    AttentionSpec spec;
    spec.element = spec.mask_type = element;
    spec.images = 2;
    spec.mask = {spec.batch, 1, spec.queries, spec.keys};
    const CudaAttentionProblem problem = problem_of(spec);
    const CudaTemplate made =
        make_cuda_attention(problem, cuda_attention_choices(problem, sample_card()).front(), sample_card());
    EXPECT_GT(cuda::compile_cuda(made.source).size(), 1000U);
    spec.groups = 1;
    const CudaAttentionProblem shared = problem_of(spec);
    for (const CudaAttentionChoice& choice : cuda_attention_choices(shared, sample_card()))
      if (choice.whole_keys || element == DType::f32 || choice.stages == 4)
        EXPECT_GT(cuda::compile_cuda(make_cuda_attention(shared, choice, sample_card()).source).size(),
                  1000U);
  }
}

}  // namespace
}  // namespace sylvite::attention_test
