#include "schedules/directives/even_folds.h"

#include <gmock/gmock.h>

#include <string>

#include "tests/schedules/fixed_machines.h"
#include "tests/support/lowered_text.h"
#include "tests/support/run_kernel.h"

namespace sylvite::even_folds_test {
namespace {

std::string softmax_of(int row) {
  const std::string type = fmt::format("f32[9,{}]", row);
  return fmt::format("graph g(%x: {0}) {{ %v: {0} = softmax(%x) {{axis=1}} return %v }}", type);
}

/// How often the text of a softmax folds a vector as the code generator does it.
int folds_left(int row, const std::string& operation) {
  const Kernel kernel = kernel_of(softmax_of(row));
  const Machine machine = fixed_machine("avx512");
  const std::string text = lowered_text(kernel, default_candidate(kernel, machine), machine.target);
  return count_in(text, "vector_reduce_" + operation);
}

TEST(EvenFolds, FindsTheLargestOfAnyVectorInATree) {
  for (const int row : {21, 37, 64, 77, 101, 128, 197}) {
    EXPECT_EQ(folds_left(row, "max"), 0) << row;
    check_kernel(softmax_of(row));
  }
}

TEST(EvenFolds, AddsUpPowersOfTwoInATree) {
  for (const int row : {16, 64, 128}) {
    EXPECT_EQ(folds_left(row, "add"), 0) << row;
    const std::string sums = fmt::format(
        "graph g(%x: f32[9,{}]) {{ %v: f32[9] = reduce_sum(%x) {{axes=[1], keepdims=0}} return %v }}", row);
    check_kernel(sums);
  }
  EXPECT_GT(folds_left(101, "add"), 0);
}

/// Processors have instructions for those.
TEST(EvenFolds, LeavesSumsOfNarrowFloats) {
  using namespace Halide::Internal;
  const Halide::Expr narrow = Variable::make(Halide::BFloat(16, 32), "x");
  const Halide::Expr sum =
      VectorReduce::make(VectorReduce::Add, Cast::make(Halide::Float(32, 32), narrow), 1);
  EXPECT_TRUE(equal(EvenFolds().mutate(sum), sum));
}

}  // namespace
}  // namespace sylvite::even_folds_test
