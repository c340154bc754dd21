#include "frontend/ops/operations_page.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"

namespace sylvite::operations_page_test {
namespace {

TEST(OperationsPage, IsUpToDate) {
  const std::string made = testing::TempDir() + "operations.md";
  std::ofstream(made) << operations_markdown();
  EXPECT_EQ(read_file(std::string(SYLVITE_TEST_DATA) + "/../../docs/operations.md"), operations_markdown())
      << "run `cp " << made << " docs/operations.md`";
}

}  // namespace
}  // namespace sylvite::operations_page_test
