#include "schedules/cuda/transpose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedules/cuda/nvrtc.h"
#include "tests/support/norm_kernels.h"

namespace sylvite::transpose_test {
namespace {

using testing::HasSubstr;

TEST(CudaTranspose, ReadsRunsOfDims) {
  const auto extents = [](const char* text) {
    const Reading<CudaTransposeProblem> reading = read_cuda_transpose(norm_kernel(text));
    EXPECT_EQ(reading.refusal, "") << text;
    return std::vector<std::int64_t>{reading.problem.batch, reading.problem.rows, reading.problem.columns};
  };
  EXPECT_THAT(extents(transpose_texts[0]), testing::ElementsAre(1, 264, 520));
  EXPECT_THAT(extents(transpose_texts[1]), testing::ElementsAre(3, 68, 132));
  EXPECT_THAT(extents(transpose_texts[2]), testing::ElementsAre(2, 64, 56));
  EXPECT_THAT(extents(transpose_texts[3]), testing::ElementsAre(1, 40, 256));
}

/// In any order, while another dim becomes the innermost one.
TEST(CudaTranspose, OtherDimsMayLieBetweenRowsAndColumns) {
  using Dim = CudaTransposeProblem::Dim;
  const CudaTransposeProblem bones = read_cuda_transpose(norm_kernel(transpose_texts[12])).problem;
  EXPECT_THAT(
      (std::vector<std::int64_t>{bones.batch, bones.rows, bones.columns, bones.pitch, bones.out_pitch}),
      testing::ElementsAre(144, 25, 64, 192, 1800));
  EXPECT_THAT(bones.batches, testing::ElementsAre(Dim{2, 115200, 115200}, Dim{24, 4800, 75}, Dim{3, 64, 25}));
  const CudaTransposeProblem ends = read_cuda_transpose(norm_kernel(transpose_texts[13])).problem;
  EXPECT_THAT((std::vector<std::int64_t>{ends.batch, ends.rows, ends.columns, ends.pitch, ends.out_pitch}),
              testing::ElementsAre(6, 40, 72, 432, 240));
}

TEST(CudaTranspose, ReadsChangesOfLayout) {
  const CudaTransposeProblem leaves = read_cuda_transpose(norm_kernel(transpose_texts[8])).problem;
  EXPECT_THAT((std::vector<std::int64_t>{leaves.batch, leaves.rows, leaves.columns}),
              testing::ElementsAre(2, 49, 40));
  const CudaTransposeProblem comes = read_cuda_transpose(norm_kernel(transpose_texts[9])).problem;
  EXPECT_THAT((std::vector<std::int64_t>{comes.batch, comes.rows, comes.columns}),
              testing::ElementsAre(2, 64, 96));
  const CudaTransposeProblem reshapes = read_cuda_transpose(norm_kernel(transpose_texts[16])).problem;
  EXPECT_THAT((std::vector<std::int64_t>{reshapes.batch, reshapes.rows, reshapes.columns}),
              testing::ElementsAre(1, 96, 64));
}

/// A slice's columns need not be whole vectors where others of its longer rows follow.
TEST(CudaTranspose, ConvertsOnTheWay) {
  const CudaTransposeProblem leaves = read_cuda_transpose(norm_kernel(transpose_texts[17])).problem;
  EXPECT_EQ(leaves.widens, DType::bf16);
  EXPECT_EQ(leaves.unit(), 8);
  const CudaTransposeProblem comes = read_cuda_transpose(norm_kernel(transpose_texts[18])).problem;
  EXPECT_EQ(comes.narrows, DType::f16);
  EXPECT_EQ(comes.unit(), 8);
  const CudaTransposeProblem part = read_cuda_transpose(norm_kernel(transpose_texts[19])).problem;
  EXPECT_EQ((std::vector<std::int64_t>{part.batch, part.rows, part.columns, part.pitch, part.unit()}),
            (std::vector<std::int64_t>{2, 72, 19, 24, 8}));
}

TEST(CudaTranspose, WorksOnSingleNumbers) {
  for (const char* text : worked_transpose_texts) {
    const Reading<CudaTransposeProblem> reading = read_cuda_transpose(norm_kernel(text));
    EXPECT_EQ(reading.refusal, "") << text;
    EXPECT_TRUE(reading.problem.work) << text;
  }
  const CudaTransposeProblem both = read_cuda_transpose(norm_kernel(worked_transpose_texts[0])).problem;
  EXPECT_THAT((std::vector<std::int64_t>{both.batch, both.rows, both.columns, both.unit()}),
              testing::ElementsAre(2, 64, 96, 8));
  EXPECT_EQ(read_cuda_transpose(norm_kernel(worked_transpose_texts[1])).problem.bytes, 4);
}

TEST(CudaTranspose, VectorsFitBothSides) {
  const auto unit = [](const char* text) { return read_cuda_transpose(norm_kernel(text)).problem.unit(); };
  EXPECT_EQ(unit(transpose_texts[0]), 8);
  EXPECT_EQ(unit(transpose_texts[4]), 4);
  EXPECT_EQ(unit(transpose_texts[5]), 2);
  EXPECT_EQ(unit(transpose_texts[6]), 2);
  EXPECT_EQ(unit(transpose_texts[7]), 1);
  EXPECT_EQ(unit(transpose_texts[8]), 1);
  EXPECT_EQ(unit(transpose_texts[12]), 1);
  EXPECT_EQ(unit(transpose_texts[14]), 8);
}

TEST(CudaTranspose, RefusesWithAReason) {
  const auto refusal = [](const char* text) { return read_cuda_transpose(norm_kernel(text)).refusal; };
  EXPECT_THAT(
      refusal(
          "graph g(%a: f32[4,64,64,32]) { %v: f32[4,64,64,32] = transpose(%a) {perm=[0,2,1,3]} return %v }"),
      HasSubstr("stays innermost"));
  EXPECT_THAT(
      refusal("graph g(%a: f32[2,64,8,8]@c8) { %v: f32[2,64,8,8] = to_layout(%a) {block=0} return %v }"),
      HasSubstr("blocks"));
  EXPECT_THAT(
      refusal("graph g(%a: f32[64,64], %b: f32[64]) { %v: f32[64,64] = transpose(%a) {perm=[1,0]} %y: "
              "f32[64,64] = add(%v, %b) return %y }"),
      HasSubstr("more than a transpose"));
  EXPECT_THAT(
      refusal("graph g(%a: f32[64,64]) { %v: f32[64,64] = transpose(%a) {perm=[1,0]} %y: f32[64,64] = "
              "add(%v, %a) return %y }"),
      HasSubstr("single numbers"));
  EXPECT_THAT(refusal("graph g(%a: f64[64,64]) { %v: f64[64,64] = transpose(%a) {perm=[1,0]} return %v }"),
              HasSubstr("2 nor 4"));
  EXPECT_THAT(refusal("graph g(%a: f32[64,8]) { %v: f32[8,64] = transpose(%a) {perm=[1,0]} return %v }"),
              HasSubstr("short"));
}

TEST(CudaTranspose, Compiles) {
  if (!cuda::missing_nvrtc().empty()) GTEST_SKIP() << cuda::missing_nvrtc();
  std::vector<const char*> texts(std::begin(transpose_texts), std::end(transpose_texts));
  texts.insert(texts.end(), std::begin(worked_transpose_texts), std::end(worked_transpose_texts));
  for (const char* text : texts) {
    const CudaTransposeProblem problem = read_cuda_transpose(norm_kernel(text)).problem;
    const CudaTemplate made = make_cuda_transpose(problem, cuda_transpose_choices(problem).front());
    EXPECT_GT(cuda::compile_cuda(made.source).size(), 1000U);
  }
}

}  // namespace
}  // namespace sylvite::transpose_test
