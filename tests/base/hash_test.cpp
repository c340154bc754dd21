#include "base/hash.h"

#include <gtest/gtest.h>

namespace sylvite::hash_test {
namespace {

TEST(Hash, MatchesTheStandardVectors) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(short_hash("abc"), "ba7816bf8f01cfea");
}

}  // namespace
}  // namespace sylvite::hash_test
