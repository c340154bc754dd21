#include "lowering/plan/work.h"

#include <gtest/gtest.h>

#include "tests/support/run_kernel.h"

namespace sylvite::work_test {
namespace {

Work work(const std::string& text) {
  return work_of(kernel_of(text));
}

TEST(Work, CountsProductsTwice) {
  const Work product = work(
      "graph g(%a: f32[4,8], %w: f32[8,16]) { %v: f32[4,16] = matmul(%a, %w) %r: f32[4,16] = relu(%v) return "
      "%r }");
  EXPECT_EQ(product.operations, 2 * 4 * 8 * 16 + 4 * 16);
  EXPECT_EQ(product.bytes, 4 * (4 * 8 + 8 * 16 + 4 * 16));
  EXPECT_EQ(product.element, DType::f32);
}

TEST(Work, SaysWhatIsMultiplied) {
  const std::string window =
      "{dilations=[1, 1], groups=GROUPS, pads=[1, 1, 1, 1], strides=[1, 1]} return %v }";
  const auto conv = [&](const std::string& filter, const std::string& groups) {
    std::string text =
        "graph g(%x: bf16[1,32,8,8], %w: bf16[" + filter + "]) { %v: bf16[1,32,8,8] = conv(%x, %w) " + window;
    return work(text.replace(text.find("GROUPS"), 6, groups));
  };
  EXPECT_EQ(conv("32,32,3,3", "1").element, DType::bf16);
  EXPECT_EQ(conv("32,32,3,3", "1").operations, 2.0 * 32 * 64 * 32 * 9);
  EXPECT_EQ(conv("32,1,3,3", "32").element, DType::f32);
  EXPECT_EQ(conv("32,1,3,3", "32").operations, 2.0 * 32 * 64 * 9);
}

TEST(Work, CountsBothProductsOfAttention) {
  const Work attention = work(
      "graph g(%q: f32[2,4,8], %k: f32[2,6,8], %v: f32[2,6,8]) { %o: f32[2,4,8] = attention(%q, %k, %v) "
      "return "
      "%o }");
  EXPECT_EQ(attention.operations, 2 * (2 * 4 * 6 * 8 * 2));
}

TEST(Work, CountsWhatIsGatheredOnly) {
  const Work rows = work(
      "graph g(%table: f32[1000,8], %i: i64[5]) { %v: f32[5,8] = gather(%table, %i) {axis=0} return %v }");
  EXPECT_EQ(rows.bytes, 4 * 5 * 8 + 8 * 5 + 4 * 5 * 8);
}

}  // namespace
}  // namespace sylvite::work_test
