#include "frontend/torch/operators_page.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"

namespace sylvite::operators_page_test {
namespace {

TEST(TorchOperatorsPage, IsUpToDate) {
  const std::string made = testing::TempDir() + "torch_operators.md";
  std::ofstream(made) << torch_operators_markdown();
  EXPECT_EQ(read_file(std::string(SYLVITE_TEST_DATA) + "/../../docs/torch_operators.md"),
            torch_operators_markdown())
      << "run `cp " << made << " docs/torch_operators.md`";
}

}  // namespace
}  // namespace sylvite::operators_page_test
