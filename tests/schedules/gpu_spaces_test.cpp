// Schedules for a GPU compile on a machine without one. That they compute the right thing is tests/gpu's
// part.

#include <algorithm>
#include <set>
#include <string_view>

#include "schedules/compile.h"
#include "tests/support/bound_space.h"
#include "tests/support/gpu_cases.h"
#include "tests/support/run_kernel.h"

namespace sylvite {
namespace {

class GpuSpaces : public testing::TestWithParam<GpuCase> {};

TEST_P(GpuSpaces, Compile) {
  const Kernel kernel = kernel_of(GetParam().text);
  const Machine machine = with_gpu(detect_machine(1), sample_card());
  const std::vector<BoundSpace> spaces = spaces_for(kernel, machine);
  // Templates come first where there is a compiler for them.
  const auto first = std::ranges::find_if(
      spaces, [](const BoundSpace& space) { return !std::string_view(space.name).starts_with("cuda_"); });
  EXPECT_EQ(first->name, GetParam().space) << kernel.text;
  std::set<std::string> seen;
  for (const BoundSpace& space : spaces) {
    if (std::string_view(space.name).starts_with("cuda_")) continue;  // tests/gpu compiles and runs these
    for (const Point& point : {space.heuristic, far_point(space)}) {
      const Candidate candidate = space.at(point);
      if (!seen.insert(candidate.to_string()).second) continue;
      EXPECT_EQ(Candidate::parse(candidate.to_string()), candidate);
      EXPECT_NO_THROW({ EXPECT_GT(compile_to_object(kernel, candidate, machine.target).size(), 1000U); })
          << space.name << "\n"
          << candidate.to_string();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, GpuSpaces, testing::ValuesIn(gpu_cases));

TEST(GpuMachine, IsPartOfTheKey) {
  const Machine cpu = detect_machine(2);
  const Machine machine = with_gpu(cpu, sample_card());
  EXPECT_TRUE(is_gpu_target(machine.target));
  EXPECT_FALSE(is_gpu_target(cpu.target));
  EXPECT_EQ(machine.description(), "NVIDIA H200, driver 13000");
  Card old = sample_card();
  old.capability = 75;
  EXPECT_THROW((void)with_gpu(cpu, old), UnsupportedError);
}

}  // namespace
}  // namespace sylvite
