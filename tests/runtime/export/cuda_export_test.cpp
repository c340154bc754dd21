// Exports for a GPU on a machine without one: what is launched is noted, written as tables, compiled and
// linked. That they run is tests/gpu's part.

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "lowering/plan/plan.h"
#include "lowering/plan/plan_loops.h"
#include "runtime/cuda/nvjitlink.h"
#include "runtime/embedded.h"
#include "runtime/export/embed/launcher_cuda.h"
#include "runtime/export/export_cuda_sources.h"
#include "schedules/compile.h"
#include "sylvite/graph_text.h"
#include "tests/runtime/test_session.h"
#include "tests/support/gpu_cases.h"
#include "tests/support/shell.h"

namespace sylvite::cuda_export_test {
namespace {

using testing::HasSubstr;

/// A kernel that reads an input and a weight, a row sum of whole numbers of it, which no template makes, and outputs that are copies.
Graph sample_graph() {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {6, 4096}));
  const ValueId w = graph.add_constant(sample_tensor(DType::f32, {4096}, 1), "w");
  const ValueId scaled = graph.add(Op::relu, {graph.add(Op::mul, {x, w})});
  const ValueId whole = graph.add(Op::cast, {scaled}, {{"to", std::string("i32")}});
  const ValueId sum = graph.add(Op::reduce_sum, {whole}, {{"axes", std::vector<std::int64_t>{1}}});
  graph.outputs = {sum, scaled, x, w};
  return graph;
}

std::vector<CompiledKernel> compiled(const Plan& plan, const Machine& machine) {
  std::vector<CompiledKernel> kernels;
  for (const Kernel& kernel : plan.kernels) {
    const BoundSpace space = spaces_for(kernel, machine).front();
    const Candidate candidate = space.at(space.heuristic);
    kernels.push_back({candidate, symbol_name(kernel, candidate, machine.target),
                       compile_to_object(kernel, candidate, machine.target)});
  }
  return kernels;
}

/// A program for a GPU that is not there.
Program program_of(const Plan& plan, const std::vector<CompiledKernel>& kernels) {
  ProgramOptions options;
  options.on_device = true;
  return {std::make_shared<const Plan>(plan), kernels, options};
}

Program sample_program(const Machine& machine) {
  const Plan plan = lower(sample_graph());
  return program_of(plan, compiled(plan, machine));
}

/// With the weights at multiples of 65,536.
ExportedProgram exported_program(Program& program) {
  ProgramCase only{&program.plan(), program.bindings(), {}};
  only.notes = std::make_shared<const DeviceNotes>(program.device_notes());
  WeightPlaces weights;
  for (std::size_t slot = 0; slot < program.bindings().weights->size(); ++slot)
    weights.slots.push_back(static_cast<std::int64_t>(slot) * 65536);
  weights.returned = [](std::int64_t) { return 0; };
  ExtentFit fit({}, {Dims{}}, 0);
  return export_program(fit, {only}, 0, {}, weights, {program.code(), {}});
}

class CudaExport : public testing::Test {
 protected:
  Machine machine_ = with_gpu(detect_machine(1), sample_card());
  Program program_ = sample_program(machine_);
  DeviceNotes notes_ = program_.device_notes();
  std::vector<ExportedProgram> exported_ = {exported_program(program_)};
};

/// Launches on a device have fixed addresses.
TEST(CudaLoops, MakeLaunchesOfTheirOwnForEachTrip) {
  const Plan looped = lower(parse_graph(R"(graph sums(%x: f32[3,16], %s: f32[16]) {
  %v1: f32[16], %v2: f32[3,16] = loop(%s, %x) {body=graph body(%a: f32[16], %b: f32[16]) {
  %v3: f32[16] = add(%a, %b)
  return %v3, %v3
}
, scanned=1, states=1, trips=3}
  return %v1, %v2
}
)"));
  const std::vector<CompiledKernel> kernels = compiled(looped, with_gpu(detect_machine(1), sample_card()));
  EXPECT_THROW((void)program_of(looped, kernels), InternalError);
  const Plan flat = unrolled(looped);
  ASSERT_EQ(looped.launches.size(), 3U);  // the slices and the first state are copied
  EXPECT_EQ(flat.launches.size(), 2U + 3U);
  const std::vector<NotedLaunches> notes = program_of(flat, kernels).device_notes().launches;
  for (const NotedLaunches& launches : notes) EXPECT_EQ(launches.size(), 1U);
  EXPECT_EQ(notes.size(), flat.launches.size());
}

TEST_F(CudaExport, RefusesLibrariesByName) {
  cuda::NotedLaunch& launch = exported_[0].device_launches[0].noted;
  std::vector<std::string> warnings;
  const std::pair<LibraryCall, const char*> calls[] = {{LibraryMatmul{}, "schedules.cublaslt=false"},
                                                       {LibraryConv{}, "schedules.cudnn=false"}};
  for (const auto& [call, hint] : calls) {
    launch.library = std::make_shared<LibraryCall>(call);
    try {
      (void)device_codes(exported_, {}, warnings);
      ADD_FAILURE() << "exported";
    } catch (const UnsupportedError& error) {
      EXPECT_THAT(error.what(), HasSubstr(hint));
    }
  }
}

TEST_F(CudaExport, NotesWhatWouldBeLaunched) {
  ASSERT_EQ(notes_.launches.size(), program_.plan().launches.size());
  bool reads_input = false;
  bool reads_weight = false;
  bool writes_output = false;
  for (const NotedLaunches& launches : notes_.launches) {
    EXPECT_FALSE(launches.empty());
    for (const cuda::NotedLaunch& launch : launches) {
      EXPECT_THAT(launch.image->substr(0, 2000), HasSubstr(".target sm_"));
      EXPECT_GE(launch.shape.block[0] * launch.shape.block[1], 1U);
      reads_input |= uses_region(launch, cuda::Region::input);
      reads_weight |= uses_region(launch, cuda::Region::weight);
      writes_output |= uses_region(launch, cuda::Region::output);
    }
  }
  EXPECT_TRUE(reads_input && reads_weight && writes_output);
}

TEST_F(CudaExport, HasMachineCodeForEveryArchitecture) {
  std::vector<std::string> warnings;
  const auto codes = device_codes(exported_, {"sm_80", "sm_90"}, warnings);
  ASSERT_FALSE(codes.empty());
  for (const std::vector<CudaCode>& each : codes) {
    EXPECT_EQ(each.back().capability, 0);
    EXPECT_THAT(each.back().bytes, HasSubstr(".entry"));
    if (!warnings.empty()) continue;  // no nvJitLink here
    ASSERT_EQ(each.size(), 3);
    EXPECT_EQ(each[0].capability, 90);  // the later one first
    EXPECT_EQ(each[1].capability, 80);
    EXPECT_THAT(each[0].bytes, testing::StartsWith("\x7f"
                                                   "ELF"));
  }
  EXPECT_THROW((void)device_codes(exported_, {"hopper"}, warnings), UsageError);
}

TEST_F(CudaExport, LinksWithoutCuda) {
  const TemporaryFolder folder;
  ExportedModel model;
  model.name = "sample";
  model.id = "0123456789abcdef";
  model.plan = &program_.plan();
  model.programs = exported_;
  std::vector<std::string> warnings;
  const std::string path = folder.path() + "/sample";
  write_file(path + ".c", cuda_tables_source(model, device_codes(exported_, {}, warnings)));
  write_file(path + ".h", cuda_interface_header(model));
  write_file(path + "_launcher.o", embedded::cuda_launcher_object);
  write_file(path + "_run.o", embedded::cuda_launcher_run_object);
  write_file(path + "_states.o", embedded::cuda_launcher_states_object);
  write_file(path + "_weights.o", embedded::weights_file_object);
  write_file(path + "_sizes.o", embedded::sized_program_object);
  output_of("cc -std=c11 -Wall -Wextra -Werror -Wno-missing-braces -shared -fPIC -o " + path + ".so " + path +
            ".c " + path + "_launcher.o " + path + "_run.o " + path + "_states.o " + path + "_weights.o " +
            path + "_sizes.o -Wl,--no-undefined -lpthread -ldl");
  void* library = ::dlopen((path + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto find = [&](const char* name) { return ::dlsym(library, name); };
  EXPECT_EQ(reinterpret_cast<int (*)()>(find("sample_output_count"))(), 4);
  sylvite_model* made = nullptr;
  const auto create = reinterpret_cast<int (*)(const char*, sylvite_model**)>(find("sample_create"));
  EXPECT_EQ(create(nullptr, &made), SYLVITE_NULL_ARGUMENT);
  const int status = create("/nonexistent", &made);
  const std::string message =
      reinterpret_cast<const char* (*)(const sylvite_model*)>(find("sample_error_message"))(nullptr);
  if (status == SYLVITE_UNSUPPORTED_DEVICE)  // no driver
    EXPECT_THAT(message, HasSubstr("CUDA driver"));
  else
    EXPECT_EQ(status, SYLVITE_BAD_WEIGHTS) << message;
  EXPECT_EQ(made, nullptr);
  ::dlclose(library);
}

TEST(NvJitLink, RefusesWhatIsNoPtx) {
  try {
    (void)cuda::assemble_ptx("no ptx", "sm_90");
    FAIL() << "it was assembled";
  } catch (const UnsupportedError& error) {
    GTEST_SKIP() << error.what();
  } catch (const CompileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("nvJitLink"));
  }
}

}  // namespace
}  // namespace sylvite::cuda_export_test
