#include "schedules/cuda/place.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/norm_kernels.h"
#include "tests/support/place_kernels.h"

// Every choice of the template of replaced values against the reference interpreter, to the bit.

namespace sylvite::cuda_place_test {
namespace {

/// Indices of all places, some of them met twice, counted from the end or out of range.
std::vector<Tensor> placed_inputs(const Kernel& kernel) {
  std::vector<Tensor> inputs = normal_inputs(kernel, 7);
  std::mt19937 random(11);
  for (std::size_t n = 0; n < inputs.size(); ++n) {
    const DType dtype = inputs[n].dtype();
    if (dtype != DType::i64 && dtype != DType::i32) continue;
    std::uniform_int_distribution<std::int64_t> index(-80, 80000);
    std::uniform_int_distribution<std::int64_t> near(-40, 40);
    for (std::int64_t i = 0; i < inputs[n].size(); ++i)
      inputs[n].set_int64(i, i % 3 == 0 ? near(random) : index(random) % 3000);
  }
  return inputs;
}

/// Bounds of the places that the indices say, where the kernel reads any: its last two inputs.
void set_bounds(const Kernel& kernel, std::vector<Tensor>& inputs) {
  const CudaPlaceProblem problem = read_cuda_place(kernel).problem;
  if (problem.part == 0) return;
  const Tensor& indices = inputs.at(static_cast<std::size_t>(problem.indices));
  for (std::int64_t part = 0; part < problem.updates / problem.part; ++part) {
    std::int64_t least = problem.places, greatest = -1;
    for (std::int64_t i = part * problem.part; i < (part + 1) * problem.part; ++i) {
      const std::int64_t index = indices.as_int64(i), from = index < 0 ? index + problem.places : index;
      const std::int64_t place = std::clamp<std::int64_t>(from, 0, problem.places - 1);
      least = std::min(least, place);
      greatest = std::max(greatest, place);
    }
    inputs.at(static_cast<std::size_t>(problem.least)).set_int64(part, least);
    inputs.at(static_cast<std::size_t>(problem.greatest)).set_int64(part, greatest);
  }
}

class GpuCudaPlace : public GpuTest, public testing::WithParamInterface<const char*> {};

TEST_P(GpuCudaPlace, IsTheInterpreters) {
  const Kernel kernel = norm_kernel(GetParam());
  const Reading<CudaPlaceProblem> reading = read_cuda_place(kernel);
  ASSERT_EQ(reading.refusal, "");
  std::vector<Tensor> inputs = placed_inputs(kernel);
  set_bounds(kernel, inputs);
  const Tensor reference = interpret(kernel.body, inputs).at(0);
  for (const CudaPlaceChoice& choice : cuda_place_choices(reading.problem)) {
    const Tensor result = run_template(make_cuda_place(reading.problem, choice), kernel, inputs, 2);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < reference.size(); ++i)
      if (result.as_double(i) != reference.as_double(i)) ++wrong;
    EXPECT_EQ(wrong, 0) << choice.own << " places of a block, clusters of " << choice.cluster;
  }
}

INSTANTIATE_TEST_SUITE_P(Places, GpuCudaPlace, testing::ValuesIn(place_texts));

}  // namespace
}  // namespace sylvite::cuda_place_test
