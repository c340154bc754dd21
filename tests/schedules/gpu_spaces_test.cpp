// Schedules for a GPU compile on a machine without one. That they compute the right thing is tests/gpu's
// part.

#include <algorithm>
#include <set>
#include <string_view>

#include "schedules/compile.h"
#include "tests/support/bound_space.h"
#include "tests/support/gpu_cases.h"
#include "tests/support/pointwise_ops.h"
#include "tests/support/run_kernel.h"

namespace sylvite::gpu_spaces_test {
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

/// The sum of every pointwise operation of `inputs` numbers that takes them as they are.
Kernel all_pointwise(DType dtype, int inputs) {
  Graph graph;
  std::vector<ValueId> x;
  x.reserve(static_cast<std::size_t>(inputs));
  for (int i = 0; i < inputs; ++i)
    x.push_back(graph.add_input("x" + std::to_string(i), make_type(dtype, {64})));
  ValueId sum = x[0];
  const auto add = [&](Op op, const Attributes& attributes) {
    const ValueId value = graph.add(op, x, attributes);
    const std::string name(dtype_name(dtype));
    sum = graph.add(Op::add, {sum, graph.add(Op::cast, {value}, {{"to", name}})});
  };
  for (const Op op : pointwise_ops(inputs, dtype)) {
    add(op, {});
    if (op == Op::mod) add(op, {{"fmod", std::int64_t{1}}});
  }
  graph.outputs = {sum};
  return make_kernel(graph, std::vector<bool>(x.size(), false));
}

TEST(GpuSpaces, CallNoFunctionThatADeviceLacks) {
  const Machine machine = with_gpu(detect_machine(1), sample_card());
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const int inputs : {1, 2}) {
      const Kernel kernel = all_pointwise(dtype, inputs);
      EXPECT_GT(kernel.body.nodes().size(), 10U) << kernel.text;
      for (const Candidate& candidate :
           {reference_candidate(kernel, machine), default_candidate(kernel, machine)}) {
        const std::string object = compile_to_object(kernel, candidate, machine.target);
        EXPECT_NE(object.find(".version"), std::string::npos) << "it has PTX as text";
        const std::size_t place = object.find(".extern .func");
        EXPECT_EQ(place, std::string::npos) << object.substr(std::min(place, object.size()), 80);
      }
    }
  }
}

TEST(GpuMachine, IsPartOfTheKey) {
  const Machine cpu = detect_machine(2);
  const Machine machine = with_gpu(cpu, sample_card());
  EXPECT_TRUE(is_gpu_target(machine.target));
  EXPECT_FALSE(is_gpu_target(cpu.target));
  EXPECT_FALSE(is_gpu_target("x86-64-linex")) << "no target, as a damaged database may have it";
  EXPECT_EQ(machine.description(), "NVIDIA H200, driver 13000");
  Card old = sample_card();
  old.capability = 75;
  EXPECT_THROW((void)with_gpu(cpu, old), UnsupportedError);
}

}  // namespace
}  // namespace sylvite::gpu_spaces_test
