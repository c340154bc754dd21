#include "sylvite/version.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/version.h"

namespace sylvite::version_test {
namespace {

TEST(Version, OfTheHeadersIsTheOneOfTheLibrary) {
  EXPECT_EQ(version,
            fmt::format("{}.{}.{}", SYLVITE_VERSION_MAJOR, SYLVITE_VERSION_MINOR, SYLVITE_VERSION_PATCH));
  EXPECT_EQ(SYLVITE_VERSION,
            SYLVITE_VERSION_MAJOR * 10000 + SYLVITE_VERSION_MINOR * 100 + SYLVITE_VERSION_PATCH);
}

}  // namespace
}  // namespace sylvite::version_test
