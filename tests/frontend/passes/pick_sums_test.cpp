// Sums that have one element which is not zero.

#include <algorithm>

#include "frontend/graph/graph_builder.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "frontend/passes/pass_list.h"
#include "sylvite/graph_text.h"
#include "tests/frontend/ops/run_op.h"

namespace sylvite::pick_sums_test {
namespace {

/// `%s` of rows that are x where the place is the index's.
std::string graph_of(const std::string& places, const std::string& sum) {
  return "graph g(%i: i64[5,1], %x: f32[5,1], %c: bool[5,1], %y: f32[5,4]) {\n  %r = constant i64[1,4] {" +
         places +
         "}\n  %z = constant f32[] {0.0}\n  %e: bool[5,4] = equal(%i, %r)\n  %b: bool[5,4] = logical_and(%e, "
         "%c)\n"
         "  %w: f32[5,4] = where(%b, %x, %z)\n" +
         sum + "  return %s\n}\n";
}
const std::string kept = "  %s: f32[5,1] = reduce_sum(%w) {axes=[1], keepdims=1}\n";

std::vector<Tensor> inputs() {
  return {Tensor::of<std::int64_t>(DType::i64, {5, 1}, {2, 6, -1, 3, 5}), counting({5, 1}),
          Tensor::of<std::uint8_t>(DType::boolean, {5, 1}, {1, 1, 1, 0, 1}), counting({5, 4})};
}

TEST(PickSums, OfOneElementAreThatElement) {
  for (const std::string& sum :
       {kept, std::string("  %s: f32[5] = reduce_sum(%w) {axes=[1], keepdims=0}\n")}) {
    const Graph before = parse_graph(graph_of("2,3,4,5", sum));
    const Graph after = pick_sums(before);
    verify(after);
    EXPECT_EQ(std::ranges::count(after.nodes(), Op::reduce_sum, &Node::op), 0);
    EXPECT_EQ(values(interpret(after, inputs())[0]), values(interpret(before, inputs())[0]));
  }
}

TEST(PickSums, LeaveOthersAlone) {
  for (const std::string& text :
       {graph_of("2,3,5,4", kept), graph_of("2,2,2,2", kept),
        graph_of("2,3,4,5", "  %s: f32[1,4] = reduce_sum(%w) {axes=[0], keepdims=1}\n"),
        graph_of("2,3,4,5",
                 "  %v: f32[5,4] = where(%b, %y, %z)\n  %s: f32[5,1] = reduce_sum(%v) {axes=[1], "
                 "keepdims=1}\n")}) {
    const Graph graph = without_dead_nodes(parse_graph(text));
    EXPECT_TRUE(same_structure(pick_sums(graph), graph));
  }
}

}  // namespace
}  // namespace sylvite::pick_sums_test
