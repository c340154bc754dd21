#include "base/files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"

namespace sylvite {
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

}  // namespace
}  // namespace sylvite
