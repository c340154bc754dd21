#include "runtime/export/data_object.h"

#include <gmock/gmock.h>

#include "base/files.h"
#include "tests/runtime/test_session.h"
#include "tests/support/shell.h"

namespace sylvite::data_object_test {
namespace {

using testing::HasSubstr;

TEST(DataObject, IsWhatReadersOfElfExpect) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/data.o";
  std::string bytes(1000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  write_file(path, data_object(bytes, "planted"));
  const std::string sections = output_of("readelf --wide --section-headers --symbols " + path);
  EXPECT_THAT(sections, testing::ContainsRegex("\\.lrodata +PROGBITS .* Al "));
  EXPECT_THAT(sections, testing::ContainsRegex(" 1000 OBJECT +GLOBAL HIDDEN .* planted"));
  EXPECT_THAT(sections, HasSubstr(".note.GNU-stack"));
  output_of("objcopy --dump-section .lrodata=" + path + ".bytes " + path);
  EXPECT_EQ(read_file(path + ".bytes"), bytes);
}

}  // namespace
}  // namespace sylvite::data_object_test
