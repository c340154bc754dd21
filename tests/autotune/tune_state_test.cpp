#include "autotune/tune_state.h"

#include <gtest/gtest.h>

#include "tests/support/gpu_cases.h"
#include "tests/support/matmul_kernels.h"

namespace sylvite {
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
  const std::vector<Candidate> on_tensor_cores = proposals(DType::bf16);
  EXPECT_FALSE(on_tensor_cores.empty());
  for (const Candidate& candidate : on_tensor_cores)
    EXPECT_TRUE(candidate.form.name == "cuda_matmul" || candidate.form.name == "cuda_warps_matmul")
        << candidate.form.name;
  const std::vector<Candidate> loops = proposals(DType::f32);
  EXPECT_FALSE(loops.empty());
  for (const Candidate& candidate : loops) EXPECT_NE(candidate.form.name, "cuda_matmul");
}

}  // namespace
}  // namespace sylvite
