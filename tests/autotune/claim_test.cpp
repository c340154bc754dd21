#include "autotune/claim.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sylvite::claim_test {
namespace {

TEST(Claim, IsHeldWhileItsProcessRuns) {
  const std::string mine = claim_of_this_process();
  EXPECT_TRUE(is_claim_held(mine)) << mine;
  EXPECT_EQ(mine, claim_of_this_process());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(claim_of_this_process() != mine && is_claim_held(mine) ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  std::string gone = mine;
  gone.replace(0, gone.find(" started"), "process " + std::to_string(child));
  EXPECT_FALSE(is_claim_held(gone));
  std::string later = mine;
  later.replace(later.find("started ") + 8, 1, "x");
  EXPECT_FALSE(is_claim_held(later)) << "another process with this number";
  for (const char* text : {"", "process ", "process x", "no such item"}) EXPECT_FALSE(is_claim_held(text));
}

}  // namespace
}  // namespace sylvite::claim_test
