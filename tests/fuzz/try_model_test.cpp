#include "tests/fuzz/try_model.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"

namespace sylvite::fuzz::try_model_test {
namespace {

// Every file on which the fuzz target import_fuzz once failed.
TEST(TryModel, FoundModelsAreRefusedOrTaken) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FOUND_MODELS)) {
    SCOPED_TRACE(entry.path().filename().string());
    EXPECT_NO_THROW((void)try_model(read_file(entry.path().string())));
    ++count;
  }
  EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace sylvite::fuzz::try_model_test
