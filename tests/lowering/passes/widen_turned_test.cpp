#include <gtest/gtest.h>

#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"
#include "sylvite/graph_text.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::widen_turned_test {
namespace {

TEST(WidenTurned, CastsComeBehindTransposes) {
  const Graph graph = parse_graph(
      "graph g(%a: bf16[4,6,1,8]) { %c: f32[4,6,1,8] = cast(%a) {to=\"f32\"} "
      "%t: f32[4,1,8,6] = transpose(%c) {perm=[0,2,3,1]} %r: f32[4,8,6] = reshape(%t) {shape=[4,8,6]} "
      "return %r }");
  const Graph after = parse_graph(
      "graph g(%a: bf16[4,6,1,8]) { %t: bf16[4,1,8,6] = transpose(%a) {perm=[0,2,3,1]} "
      "%r: bf16[4,8,6] = reshape(%t) {shape=[4,8,6]} %c: f32[4,8,6] = cast(%r) {to=\"f32\"} return %c }");
  EXPECT_TRUE(same_structure(widen_turned(graph), after));
}

/// Reshapes alone move nothing, what several read is computed once, and narrower numbers are moved as they are.
TEST(WidenTurned, OthersStay) {
  for (const char* text :
       {"graph g(%a: bf16[4,6]) { %c: f32[4,6] = cast(%a) {to=\"f32\"} %r: f32[24] = reshape(%c) "
        "{shape=[24]} "
        "return %r }",
        "graph g(%a: bf16[4,6]) { %c: f32[4,6] = cast(%a) {to=\"f32\"} %t: f32[6,4] = transpose(%c) "
        "{perm=[1,0]} return %t, %c }",
        "graph g(%a: f32[4,6]) { %c: bf16[4,6] = cast(%a) {to=\"bf16\"} %t: bf16[6,4] = transpose(%c) "
        "{perm=[1,0]} return %t }"}) {
    const Graph graph = parse_graph(text);
    EXPECT_TRUE(same_structure(widen_turned(graph), graph)) << text;
  }
}

}  // namespace
}  // namespace sylvite::widen_turned_test
