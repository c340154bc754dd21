#pragma once
// Commands that tests run.

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace sylvite {

/// What the command prints; fails the test when it does not succeed.
inline std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) {
    ADD_FAILURE() << "cannot start " << command << ": " << std::strerror(errno);
    return text;
  }
  char part[256];
  while (std::fgets(part, sizeof(part), pipe) != nullptr) text += part;
  EXPECT_EQ(::pclose(pipe), 0) << command << '\n' << text;
  return text;
}

}  // namespace sylvite
