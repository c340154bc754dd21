#include "base/dynamic_library.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace sylvite::dynamic_library_test {
namespace {

using testing::HasSubstr;

template <typename Work>
std::string refusal_of(Work work) {
  try {
    work();
  } catch (const UnsupportedError& error) {
    return error.what();
  }
  return "";
}

TEST(DynamicLibrary, FindsFunctionsOfAnyType) {
  const DynamicLibrary math("the math library", {"libno_such_library.so", "libm.so.6"});
  EXPECT_EQ(math.name(), "libm.so.6");
  double (*root)(double) = math.function("sqrt");
  EXPECT_EQ(root(16), 4);
}

TEST(DynamicLibrary, NamesWhatIsMissing) {
  EXPECT_THAT(refusal_of([] { DynamicLibrary("a library", {"libno_such_library.so"}); }),
              HasSubstr("a library was not found: none of libno_such_library.so"));
  const DynamicLibrary math("the math library", {"libm.so.6"});
  EXPECT_EQ(refusal_of([&] { (void)math.function("no_such_function"); }),
            "libm.so.6 has no no_such_function: it is too old");
}

}  // namespace
}  // namespace sylvite::dynamic_library_test
