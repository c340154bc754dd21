#include "schedules/cuda/concat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedules/cuda/nvrtc.h"
#include "tests/support/norm_kernels.h"

namespace sylvite::concat_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CudaConcatProblem problem_of(const char* text) {
  const Reading<CudaConcatProblem> reading = read_cuda_concat(norm_kernel(text));
  EXPECT_EQ(reading.refusal, "") << text;
  return reading.problem;
}

TEST(CudaConcat, RowsAreAheadOfTheAxis) {
  const auto extents = [](const char* text) {
    const CudaConcatProblem problem = problem_of(text);
    return std::vector<std::int64_t>{problem.rows, problem.columns, problem.vector()};
  };
  EXPECT_THAT(extents(concat_texts[0]), ElementsAre(2 * 7 * 5, 104, 8)) << "pixels";
  EXPECT_THAT(extents(concat_texts[1]), ElementsAre(3 * 9 * 4, 32, 4));
  EXPECT_THAT(extents(concat_texts[2]), ElementsAre(5 * 7, 36, 1));
  EXPECT_THAT(extents(concat_texts[3]), ElementsAre(4, 7 * 40, 8));
  EXPECT_THAT(extents(concat_texts[6]), ElementsAre(2 * 3 * 4 * 5, 40, 8));
  EXPECT_THAT(extents(concat_texts[7]), ElementsAre(2 * 3 * 5, 40, 8)) << "every third image";
  EXPECT_THAT(extents(concat_texts[8]), ElementsAre(2, 5 * 5 * 24, 8)) << "lines";
}

TEST(CudaConcat, PartsMayBeSlices) {
  const CudaConcatProblem problem = problem_of(concat_texts[5]);
  EXPECT_EQ(problem.parts[0].of.row, 96);
  EXPECT_EQ(problem.parts[0].of.of.offset, 40);
  EXPECT_EQ(problem.parts[0].end, 48);
  EXPECT_EQ(problem.epilogue_operands.at(0).row, 96);
}

TEST(CudaConcat, RefusesWithAReason) {
  const auto refusal = [](const char* text) { return read_cuda_concat(norm_kernel(text)).refusal; };
  EXPECT_THAT(refusal(concat_texts[4]), HasSubstr("changes the shape")) << "a concat in a concat";
  EXPECT_THAT(
      refusal("graph g(%a: f32[4,6], %b: f32[4,3]) { %x: f32[4,6] = relu(%a) %v: f32[4,9] = concat(%x, %b) "
              "{axis=1} return %v }"),
      HasSubstr("a part is computed"));
  EXPECT_THAT(
      refusal("graph g(%a: i32[4,6], %b: i32[4,3]) { %v: i32[4,9] = concat(%a, %b) {axis=1} return %v }"),
      HasSubstr("no floats"));
  EXPECT_THAT(
      refusal("graph g(%a: f32[6,4], %b: f32[4,3]) { %t: f32[4,6] = transpose(%a) {perm=[1,0]} %v: f32[4,9] "
              "= concat(%t, %b) {axis=1} return %v }"),
      HasSubstr("apart"));
}

TEST(CudaConcat, Compiles) {
  if (!cuda::missing_nvrtc().empty()) GTEST_SKIP() << cuda::missing_nvrtc();
  for (const char* text : concat_texts) {
    const Reading<CudaConcatProblem> reading = read_cuda_concat(norm_kernel(text));
    if (!reading.refusal.empty()) continue;
    const CudaTemplate made = make_cuda_concat(reading.problem, cuda_concat_choices(reading.problem).front());
    EXPECT_GT(cuda::compile_cuda(made.source).size(), 1000U);
  }
}

}  // namespace
}  // namespace sylvite::concat_test
