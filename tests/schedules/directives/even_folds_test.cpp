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

int slices_of(int row) {
  const Kernel kernel = kernel_of(softmax_of(row));
  const Machine machine = fixed_machine("avx512");
  return count_in(lowered_text(kernel, default_candidate(kernel, machine), machine.target), "slice_vectors");
}

TEST(EvenFolds, FoldsOddVectorsFromEitherEnd) {
  for (const int row : {21, 37, 77, 101, 197}) {
    EXPECT_EQ(slices_of(row), 2) << row;
    check_kernel(softmax_of(row));
  }
}

TEST(EvenFolds, LeavesPowersOfTwo) {
  EXPECT_EQ(slices_of(64), 0);
}

}  // namespace
}  // namespace sylvite::even_folds_test
