#include "base/files.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"

namespace sylvite::files_test {
namespace {

TEST(Files, WriteReplacesAndLeavesNothingElse) {
  const std::string folder = testing::TempDir() + "/sylvite_files_test";
  std::filesystem::remove_all(folder);
  make_folder(folder + "/deep");
  const std::string path = folder + "/deep/file";
  write_file(path, "first");
  write_file(path, std::string("se\0cond", 7));
  EXPECT_EQ(read_file(path), std::string("se\0cond", 7));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder + "/deep"), {}), 1);
}

TEST(Files, ErrorsNameThePath) {
  EXPECT_THROW((void)read_file("/nonexistent/x"), IoError);
  EXPECT_THROW((void)read_file("/tmp"), IoError);
  EXPECT_THROW((void)read_file("/dev/zero"), IoError);
  EXPECT_THROW(write_file("/nonexistent/x", "y"), IoError);
  EXPECT_THROW(make_folder("/dev/null/x"), IoError);
}

/// Services and containers have no HOME, often.
TEST(Files, TheCacheFolderIsFoundWithoutHome) {
  const char* const xdg = ::getenv("XDG_CACHE_HOME");
  const std::string xdg_before = xdg == nullptr ? "" : xdg;
  const char* const home = ::getenv("HOME");
  const std::string home_before = home == nullptr ? "" : home;
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", "/home/somebody", 1);
  EXPECT_EQ(user_cache_folder().path, "/home/somebody/.cache/sylvite");
  EXPECT_EQ(user_cache_folder().warning, "");
  ::unsetenv("HOME");
  EXPECT_NE(user_cache_folder().warning.find("HOME"), std::string::npos) << "whether there is another or not";
  if (::getpwuid(::geteuid()) != nullptr)
    EXPECT_TRUE(user_cache_folder().path.ends_with("/.cache/sylvite")) << user_cache_folder().path;
  if (home != nullptr) ::setenv("HOME", home_before.c_str(), 1);
  if (xdg != nullptr) ::setenv("XDG_CACHE_HOME", xdg_before.c_str(), 1);
}

}  // namespace
}  // namespace sylvite::files_test
