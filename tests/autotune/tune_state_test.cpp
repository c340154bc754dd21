#include "autotune/tune_state.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/gpu_cases.h"
#include "tests/support/matmul_kernels.h"

namespace sylvite::tune_state_test {
namespace {

/// All that the search would try, without measuring.
std::vector<Candidate> proposals(DType dtype) {
  MatmulSpec spec;
  spec.element = spec.out = dtype;
  const Kernel kernel = matmul_kernel(spec);
  const Machine machine = with_gpu(detect_machine(1), sample_card());
  Evaluator evaluator;
  evaluator.spaces = [](const Kernel& k, const Machine& m) { return spaces_for(k, m); };
  evaluator.reference = [&](const Kernel& k) { return reference_candidate(k, machine); };
  return TuneState(kernel, machine, evaluator, {}, std::nullopt).search.propose(1000);
}

TEST(TuneState, LoopsAreNotTriedForProductsThatTensorCoresMake) {
  const auto is_on_tensor_cores = [](const Candidate& candidate) {
    return candidate.form.name == "cuda_matmul" || candidate.form.name == "cuda_warps_matmul";
  };
  for (const DType dtype : {DType::bf16, DType::f32}) {
    const std::vector<Candidate> tried = proposals(dtype);
    EXPECT_FALSE(tried.empty());
    EXPECT_TRUE(std::ranges::all_of(tried, is_on_tensor_cores));
  }
  const std::vector<Candidate> loops = proposals(DType::f64);
  EXPECT_FALSE(loops.empty());
  EXPECT_TRUE(std::ranges::none_of(loops, is_on_tensor_cores));
}

}  // namespace
}  // namespace sylvite::tune_state_test
