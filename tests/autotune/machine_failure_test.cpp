#include "autotune/machine_failure.h"

#include <gmock/gmock.h>

namespace sylvite::machine_failure_test {
namespace {

TEST(MachineFailure, IsToldFromAFailureOfTheCandidate) {
  for (const char* message :
       {"the compiler was killed by signal 9 (Killed)", "std::bad_alloc", "LLVM ERROR: out of memory",
        "LLVM ERROR: IO failure on output stream: File too large",
        "filesystem error: temp_directory_path: Not a directory [/nonexistent]"}) {
    EXPECT_TRUE(is_machine_failure(message)) << message;
    EXPECT_THAT(with_advice(message), testing::StartsWith(std::string(message) + "; "));
  }
  for (const char* message :
       {"", "stopped after 30.0 s", "the compiler was killed by signal 11 (Segmentation fault)",
        "the compiler was stopped from here", "differs from the reference schedule"}) {
    EXPECT_FALSE(is_machine_failure(message)) << message;
    EXPECT_EQ(with_advice(message), message);
  }
}

TEST(MachineFailure, KnowsLackOfMemory) {
  for (const char* message : {"std::bad_alloc", "the kernel reported error -11: Out of memory"})
    EXPECT_TRUE(is_lack_of_memory(message)) << message;
  for (const char* message : {"", "No space left on device", "killed by signal 9 (Killed)"})
    EXPECT_FALSE(is_lack_of_memory(message)) << message;
}

}  // namespace
}  // namespace sylvite::machine_failure_test
