#include "tests/fuzz/case_files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temporary_folder.h"

namespace sylvite::fuzz::case_files_test {
namespace {

// Of a case that fails nothing is known to compare with.
TEST(CaseFiles, KeepCasesWithoutExpectations) {
  const TemporaryFolder folder;
  ModelGrower grower(3);
  const ModelCase test = grower.grow(4);
  save_case(folder.path(), test, {});
  const ModelCase again = load_case(folder.path());
  EXPECT_EQ(again.model.SerializeAsString(), test.model.SerializeAsString());
  ASSERT_EQ(again.inputs.size(), test.inputs.size());
  for (std::size_t i = 0; i < test.inputs.size(); ++i)
    EXPECT_EQ(again.inputs[i].type(), test.inputs[i].type());
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/output_0.npy"));
}

}  // namespace
}  // namespace sylvite::fuzz::case_files_test
