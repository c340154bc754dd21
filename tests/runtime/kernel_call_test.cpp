#include "runtime/kernel_call.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "lowering/plan/plan.h"
#include "runtime/program.h"
#include "schedules/compile.h"
#include "schedules/cuda/candidate.h"
#include "schedules/machine.h"
#include "schedules/space.h"

namespace sylvite::kernel_call_test {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

/// y = relu(x) by a kernel that no template makes.
CudaObject sample_object() {
  CudaObject object;
  object.launch.entry = "sample";
  object.launch.shape.grid[0] = 7;
  object.launch.pointers = {1, 0};
  object.image = "machine code";
  object.architecture = "sm_90a";
  return object;
}

TEST(KernelCall, NotesALaunchAsItWasCompiled) {
  ObjectLoader loader;
  RunContext context(1);
  cuda::LaunchRecorder recorder;
  KernelCall call(load_kernel(loader, to_bytes(sample_object()), "unused", true), context, 2);
  const std::uint64_t words[] = {cuda::encode_address({cuda::Region::input, 0, 0}),
                                 cuda::encode_address({cuda::Region::output, 0, 0})};
  for (const std::uint64_t word : words) call.add_argument(DType::f32, {4, 8}).device = word;
  const cuda::Recording recording = call.note(recorder);
  EXPECT_EQ(recording.status, 0);
  ASSERT_THAT(recording.launches, SizeIs(1));
  EXPECT_EQ(*recording.launches[0].image, "machine code");
  EXPECT_EQ(recording.launches[0].shape, sample_object().launch.shape);
  EXPECT_THAT(std::get<cuda::PointerArgument>(recording.launches[0].arguments.at(0)).words,
              ElementsAre(words[1], words[0]));
}

TEST(KernelCall, RefusesWhatCannotBeLoaded) {
  ObjectLoader loader;
  const std::string bytes = to_bytes(sample_object());
  EXPECT_THROW((void)load_kernel(loader, bytes.substr(0, bytes.size() - 1), "cut", true), IoError);
  EXPECT_THROW((void)load_kernel(loader, "neither", "other", true), IoError);
  EXPECT_THROW((void)load_kernel(loader, bytes, "on_the_cpu", false), IoError);
}

/// An index that all elements share is read by the kernel, not by the code of the host around it.
TEST(KernelCall, ReadsNothingOfTheDeviceOnTheHost) {
  Graph graph;
  const ValueId table = graph.add_input("table", make_type(DType::f32, {61, 32}));
  const ValueId index = graph.add_input("index", make_type(DType::i64, {1}));
  const ValueId x = graph.add_input("x", make_type(DType::f32, {1, 32}));
  const ValueId row = graph.add(Op::gather, {table, index}, {{"axis", std::int64_t{0}}});
  graph.outputs = {graph.add(Op::add, {row, x})};
  const Plan plan = lower(graph);
  ASSERT_THAT(plan.kernels, SizeIs(1));
  const Kernel& kernel = plan.kernels[0];
  const Machine machine = with_gpu(detect_machine(1), {"a card", 80, 12000, 108, 163 << 10, 40 << 20});
  const Candidate candidate = default_candidate(kernel, machine);
  const std::string object = compile_to_object(kernel, candidate, machine.target);
  ObjectLoader loader;
  RunContext context(1);
  cuda::LaunchRecorder recorder;
  KernelCall call(load_kernel(loader, object, symbol_name(kernel, candidate, machine.target), true), context, 4);
  std::uint32_t number = 0;
  for (const ValueId id :
       {kernel.body.inputs[0], kernel.body.inputs[1], kernel.body.inputs[2], kernel.body.outputs[0]}) {
    const TensorType& type = kernel.body.type(id);
    call.add_argument(type.dtype, type.dims()).device =
        cuda::encode_address({cuda::Region::input, number++, 0});
  }
  const cuda::Recording recording = call.note(recorder);
  EXPECT_EQ(recording.status, 0);
  EXPECT_THAT(recording.launches, SizeIs(1));
}

/// The launch lies beside the machine code: the template is not asked again, and here could not answer.
TEST(Program, LoadsTemplatesWithoutTheirText) {
  Graph graph;
  graph.outputs = {graph.add(Op::relu, {graph.add_input("x", make_type(DType::f32, {4, 8}))})};
  const auto plan = std::make_shared<const Plan>(lower(graph));
  ASSERT_THAT(plan->kernels, SizeIs(1));
  const Candidate candidate{{"cuda_norm", {}}, {}};
  EXPECT_THROW((void)cuda_template_of(plan->kernels[0], candidate), Error);
  ProgramOptions options;
  options.on_device = true;
  Program program(plan, {{candidate, "unused", to_bytes(sample_object())}}, options);
  const DeviceNotes notes = program.device_notes();
  ASSERT_THAT(notes.launches, SizeIs(1));
  ASSERT_THAT(notes.launches[0], SizeIs(1));
  EXPECT_EQ(notes.launches[0][0].function, "sample");
  EXPECT_EQ(notes.launches[0][0].architecture, "sm_90a");
  EXPECT_TRUE(uses_region(notes.launches[0][0], cuda::Region::input));
  EXPECT_TRUE(uses_region(notes.launches[0][0], cuda::Region::output));
}

/// A state has a region of its own; it is zero before there is a device.
TEST(Program, NamesStatesOnADevice) {
  Graph graph;
  const ValueId past = graph.add_input("past", make_type(DType::f32, {4, 8}));
  graph.outputs = {graph.add(Op::relu, {past})};
  graph.states = {{0, 0}};
  const auto plan = std::make_shared<const Plan>(lower(graph));
  ASSERT_THAT(plan->launches, SizeIs(2));  // the second copies what the first makes of the state
  ProgramOptions options;
  options.on_device = true;
  const Candidate candidate{{"cuda_norm", {}}, {}};
  std::vector<CompiledKernel> kernels;
  kernels.reserve(plan->kernels.size());
  for (std::size_t i = 0; i < plan->kernels.size(); ++i)
    kernels.push_back({candidate, "unused", to_bytes(sample_object())});
  Program program(plan, kernels, options);
  for (const NotedLaunches& launches : program.device_notes().launches)
    EXPECT_TRUE(uses_region(launches.at(0), cuda::Region::state));
  ASSERT_THAT(program.states(), SizeIs(1));
  EXPECT_EQ(program.states()[0].as_double(31), 0);
}

}  // namespace
}  // namespace sylvite::kernel_call_test
