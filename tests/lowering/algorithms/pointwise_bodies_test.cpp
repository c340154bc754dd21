#include "lowering/algorithms/pointwise_bodies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "frontend/ops/op_table.h"

namespace sylvite::pointwise_bodies_test {
namespace {

TEST(PointwiseBodies, EveryPointwiseOperationHasAnExpressionAndATextOrRefusal) {
  for (const OpInfo& row : op_table()) {
    if (!row.has(OpTrait::pointwise)) {
      EXPECT_THROW((void)pointwise_body(row.op), UnsupportedError) << row.name;
      continue;
    }
    const PointwiseBody& body = pointwise_body(row.op);
    EXPECT_NE(body.expression, nullptr) << row.name;
    EXPECT_NE(body.text == nullptr, body.text_of == nullptr) << row.name;
  }
}

TEST(PointwiseBodies, RefusalsNameTheOperation) {
  const Node node{Op::shift_left, {}, {}, {}, ""};
  EXPECT_THAT([&] { (void)c_text(node, {"a", "b"}, false); },
              testing::ThrowsMessage<UnsupportedError>(testing::HasSubstr("shift_left is not printed as C")));
}

}  // namespace
}  // namespace sylvite::pointwise_bodies_test
