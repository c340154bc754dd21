#include "schedules/compile_apart.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>

#include "schedules/machine.h"
#include "schedules/space.h"
#include "tests/support/run_kernel.h"

namespace sylvite::compile_apart_test {
namespace {

const char* const product =
    "graph g(%a: f32[64,64], %b: f32[64,64]) { %v: f32[64,64] = matmul(%a, %b) return %v }";
const char* const exponentials = "graph g(%a: f32[400,24]) { %v: f32[400,24] = exp(%a) return %v }";

/// Names that the code generator numbers are symbols of the object: they tell nothing of what was compiled before.
TEST(CompileApart, GivesTheSameBytesWhateverWasCompiledBefore) {
  const Machine machine = detect_machine(2);
  const Kernel kernel = kernel_of(product);
  const Kernel other = kernel_of(exponentials);
  const Candidate candidate = default_candidate(kernel, machine);
  const std::string first = compile_apart(kernel, candidate, machine.target);
  EXPECT_EQ(first.substr(1, 3), "ELF");
  (void)compile_apart(other, default_candidate(other, machine), machine.target);
  EXPECT_TRUE(compile_apart(kernel, candidate, machine.target) == first);
}

TEST(CompileApart, PassesErrorsOn) {
  const Kernel kernel = kernel_of(exponentials);
  const auto compile = [&](const std::string& schedule) {
    (void)compile_apart(kernel, Candidate::parse("form: generic\n" + schedule), detect_machine(1).target);
  };
  EXPECT_THAT([&] { compile("v0.unroll(d9);"); },
              testing::ThrowsMessage<CompileError>(testing::HasSubstr("no loop 'd9'")));
}

/// Whoever started this process asks how it ended.
TEST(CompileApartDeathTest, DiesAsTheForkDoes) {
  const Kernel kernel = kernel_of(exponentials);
  const Machine machine = detect_machine(1);
  const auto compile_without_time = [&] {
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    ::setrlimit(RLIMIT_CPU, &none);
    (void)compile_apart(kernel, default_candidate(kernel, machine), machine.target);
  };
  EXPECT_EXIT(compile_without_time(), testing::KilledBySignal(SIGKILL), "");
}

}  // namespace
}  // namespace sylvite::compile_apart_test
