#include "runtime/object_cache.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "schedules/cuda/object.h"
#include "tests/support/temporary_folder.h"

namespace sylvite::object_cache_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ObjectCacheTest : public testing::Test {
 protected:
  [[nodiscard]] std::string folder() const { return root_.file("a/b"); }
  [[nodiscard]] std::string entry() const { return folder() + "/k.obj"; }

  TemporaryFolder root_;
};

TEST_F(ObjectCacheTest, RoundTripsBytesInAFolderForTheOwnerOnly) {
  const std::string object(
      "\x7f"
      "ELF\0\n bytes",
      12);
  ObjectCache cache(folder());
  EXPECT_FALSE(cache.load("k").has_value());
  cache.store("k", object);
  EXPECT_EQ(cache.load("k"), object);
  EXPECT_EQ(cache.warning(), "");
  struct stat status{};
  ASSERT_EQ(::stat(folder().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
}

/// Bytes that pass as an object of the GPU, and are none, are compiled again.
TEST_F(ObjectCacheTest, UnreadableLaunchesAreAMiss) {
  CudaObject object;
  object.launch.entry = "product";
  const std::string bytes = to_bytes(object);
  ObjectCache cache(folder());
  cache.store("k", bytes);
  EXPECT_EQ(cache.load("k"), bytes);
  cache.store("k", bytes.substr(0, bytes.size() - 1));
  EXPECT_FALSE(cache.load("k").has_value());
  EXPECT_THAT(cache.warning(), HasSubstr("damaged"));
}

TEST_F(ObjectCacheTest, EmptyFolderNameDisablesIt) {
  ObjectCache cache("");
  cache.store("k", "object");
  EXPECT_FALSE(cache.load("k").has_value());
  EXPECT_EQ(cache.warning(), "");
}

TEST_F(ObjectCacheTest, EveryFlippedByteIsAMiss) {
  ObjectCache cache(folder());
  cache.store("k", "object code");
  std::string bytes;
  {
    std::ifstream file(entry(), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    std::ofstream(entry(), std::ios::binary) << damaged;
    EXPECT_FALSE(cache.load("k").has_value()) << "byte " << i;
  }
  EXPECT_THAT(cache.warning(), HasSubstr("compiled again"));
}

TEST_F(ObjectCacheTest, EveryTruncationIsAMiss) {
  ObjectCache cache(folder());
  cache.store("k", "object code");
  for (auto size = fs::file_size(entry()); size-- > 0;) {
    fs::resize_file(entry(), size);
    EXPECT_FALSE(cache.load("k").has_value()) << size << " bytes";
  }
}

TEST_F(ObjectCacheTest, AnEntryUnderAnotherSymbolIsAMiss) {
  ObjectCache cache(folder());
  cache.store("other", "object code");
  fs::copy_file(folder() + "/other.obj", entry());
  EXPECT_FALSE(cache.load("k").has_value());
  EXPECT_THAT(cache.warning(), HasSubstr("foreign"));
}

TEST_F(ObjectCacheTest, WritableByOthersIsNotTrusted) {
  ObjectCache cache(folder());
  cache.store("k", "object code");
  ::chmod(entry().c_str(), 0666);
  EXPECT_FALSE(cache.load("k").has_value());
  ::chmod(entry().c_str(), 0600);
  EXPECT_TRUE(cache.load("k").has_value());
  ::chmod(folder().c_str(), 0777);
  ObjectCache reopened(folder());
  EXPECT_FALSE(reopened.load("k").has_value());
  EXPECT_THAT(reopened.warning(), HasSubstr("other users"));
}

TEST_F(ObjectCacheTest, LinksAndSpecialFilesAreNotFollowed) {
  ObjectCache cache(folder());
  cache.store("other", "object code");
  fs::create_symlink(folder() + "/other.obj", entry());
  EXPECT_FALSE(cache.load("k").has_value());
  fs::remove(entry());
  fs::create_directory(entry());
  EXPECT_FALSE(cache.load("k").has_value());
}

TEST_F(ObjectCacheTest, AFolderThatCannotBeMadeIsAWarning) {
  std::ofstream(root_.file("file")) << "x";
  ObjectCache below_file(root_.file("file/cache"));
  EXPECT_THAT(below_file.warning(), HasSubstr("cannot be created"));
  ObjectCache file(root_.file("file"));
  EXPECT_THAT(file.warning(), HasSubstr("not a folder"));
  file.store("k", "object code");
  EXPECT_FALSE(file.load("k").has_value());
}

TEST_F(ObjectCacheTest, ALostStoreIsAWarning) {
  ObjectCache cache(folder());
  fs::remove_all(folder());
  cache.store("k", "object code");
  EXPECT_THAT(cache.warning(), HasSubstr("cannot be written"));
}

}  // namespace
}  // namespace sylvite::object_cache_test
