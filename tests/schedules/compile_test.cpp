#include "schedules/compile.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include "schedules/cuda/candidate.h"
#include "schedules/cuda/nvrtc.h"
#include "schedules/cuda/spaces.h"
#include "tests/support/bound_space.h"
#include "tests/support/gpu_cases.h"
#include "tests/support/run_kernel.h"

namespace sylvite::compile_test {
namespace {

const char* const exponentials = "graph g(%a: f32[4,24]) { %v: f32[4,24] = exp(%a) return %v }";

TEST(Compile, MakesAnObjectWithTheSymbolAndNoRuntime) {
  const Kernel kernel = kernel_of(exponentials);
  const Machine machine = detect_machine(1);
  const Candidate candidate = default_candidate(kernel, machine);
  const std::string object = compile_to_object(kernel, candidate, machine.target);
  const std::string symbol = symbol_name(kernel, candidate, machine.target);
  EXPECT_EQ(object.substr(1, 3), "ELF");
  EXPECT_TRUE(object.find(symbol + "_argv") != std::string::npos);
  EXPECT_LT(object.size(), 100000U);
}

TEST(Compile, NeedsNoTemporaryFolder) {
  const Kernel kernel = kernel_of(exponentials);
  const Machine machine = detect_machine(1);
  ASSERT_EQ(::setenv("TMPDIR", "/nonexistent", 1), 0);
  const std::string object = compile_to_object(kernel, default_candidate(kernel, machine), machine.target);
  ::unsetenv("TMPDIR");
  EXPECT_EQ(object.substr(1, 3), "ELF");
}

TEST(Compile, KeepsTheLaunchOfATemplateBesideItsCode) {
  if (!cuda::missing_nvrtc().empty()) GTEST_SKIP() << cuda::missing_nvrtc();
  const Kernel kernel = kernel_of(exponentials);
  const Machine machine = with_gpu(detect_machine(1), sample_card());
  const Candidate candidate = heuristic_candidate(cuda_pointwise_space, kernel, machine);
  const CudaObject object = parse_cuda_object(compile_to_object(kernel, candidate, machine.target));
  EXPECT_EQ(object.launch, cuda_template_of(kernel, candidate)->launch);
  EXPECT_EQ(object.architecture, "sm_90a");
  EXPECT_EQ(object.image.substr(1, 3), "ELF");
  EXPECT_TRUE(object.image.find(object.launch.entry) != std::string::npos);
}

TEST(Compile, SymbolsNameKernelCandidateAndTarget) {
  const Kernel kernel = kernel_of(exponentials);
  const Machine machine = detect_machine(1);
  const Candidate heuristic = default_candidate(kernel, machine);
  const std::string symbol = symbol_name(kernel, heuristic, machine.target);
  EXPECT_EQ(symbol,
            symbol_name(parse_kernel(kernel.text), Candidate::parse(heuristic.to_string()), machine.target));
  EXPECT_NE(symbol, symbol_name(kernel, reference_candidate(kernel), machine.target));
  EXPECT_NE(symbol, symbol_name(kernel, heuristic, "x86-64-linux"));
}

// Whether or not something was compiled before.
TEST(Compile, WarningsOfHalideAreNotPrinted) {
  testing::internal::CaptureStderr();
  const Halide::Var x("x");
  Halide::Func scheduled_in_part("scheduled_in_part");
  scheduled_in_part(x) = 0;
  scheduled_in_part(x) += x;
  scheduled_in_part.vectorize(x, 4);
  (void)scheduled_in_part.realize({16});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Compile, ErrorsNameWhatHalideRefused) {
  const Kernel kernel = kernel_of(exponentials);
  const auto message = [&](const std::string& schedule, const std::string& target) {
    try {
      (void)compile_to_object(kernel, Candidate::parse("form: generic\n" + schedule), target);
    } catch (const CompileError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message("v0.unroll(d9);", "host"), testing::HasSubstr("no loop 'd9'"));
  EXPECT_THAT(message("v0.reorder(d0, d0);", "host"), testing::HasSubstr("v0.reorder(d0, d0)"));
  const std::string of_target = message("", "x86-64-linux-no_such_feature");
  EXPECT_THAT(of_target, testing::StartsWith("kernel " + kernel.id));
  EXPECT_THAT(of_target, testing::HasSubstr("no_such_feature"));
}

}  // namespace
}  // namespace sylvite::compile_test
