#include "schedules/cuda/place.h"

#include <gtest/gtest.h>

#include "schedules/cuda/nvrtc.h"
#include "tests/support/norm_kernels.h"
#include "tests/support/place_kernels.h"

// What the template of replaced values reads and refuses, and that its text compiles; tests/gpu runs it.

namespace sylvite::place_test {
namespace {

TEST(CudaPlace, ReadsDimsAheadOfTheAxisAsBatches) {
  const CudaPlaceProblem problem = read_cuda_place(norm_kernel(place_texts[3])).problem;
  EXPECT_EQ(problem.batches, 4);
  EXPECT_EQ(problem.places, 270);
  EXPECT_EQ(problem.updates, 99);
  EXPECT_EQ(problem.columns, 1);
}

TEST(CudaPlace, ReadsSlicesAsColumns) {
  const CudaPlaceProblem problem = read_cuda_place(norm_kernel(place_texts[7])).problem;
  EXPECT_EQ(problem.batches, 1);
  EXPECT_EQ(problem.places, 63);
  EXPECT_EQ(problem.updates, 40);
  EXPECT_EQ(problem.columns, 20);
}

TEST(CudaPlace, Compiles) {
  for (const char* text : place_texts) {
    const Reading<CudaPlaceProblem> reading = read_cuda_place(norm_kernel(text));
    ASSERT_EQ(reading.refusal, "") << text;
    for (const CudaPlaceChoice& choice : cuda_place_choices(reading.problem)) {
      const CudaTemplate made = make_cuda_place(reading.problem, choice);
      EXPECT_LE(made.launch.shape.shared_bytes, 96U << 10);
      if (!cuda::missing_nvrtc().empty()) continue;
      EXPECT_FALSE(cuda::compile_cuda(made.source).empty());
    }
  }
}

TEST(CudaPlace, LeavesSumsToOthers) {
  EXPECT_EQ(
      read_cuda_place(
          norm_kernel(
              R"(graph g(%x: f32[9], %i: i64[7], %u: f32[7]) { %v: f32[9] = scatter_elements(%x, %i, %u) {axis=0, reduction="add"} return %v })"))
          .refusal,
      "it does not replace");
}

}  // namespace
}  // namespace sylvite::place_test
