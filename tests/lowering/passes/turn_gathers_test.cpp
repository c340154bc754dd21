#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"
#include "sylvite/graph_text.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::turn_gathers_test {
namespace {

void expect_the_same(const Graph& graph, const Graph& turned) {
  EXPECT_EQ(turned.type(turned.outputs[0]), graph.type(graph.outputs[0]));
  const std::vector<Tensor> inputs = random_inputs(graph);
  expect_close(interpret(turned, inputs).at(0), interpret(graph, inputs).at(0));
}

/// Two places for each of twelve pixels, weighed by numbers for places and joined, in lines of four.
TEST(TurnGathers, PlacesOfAllChannelsAreRowsUntilTheEnd) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[2,16,9], %w: f32[2,1,12], %m: f32[1,1,3,4]) {
    %i = constant i32[1,1,12] {0, 8, 3, 3, 1, 7, 2, 5, 4, 6, 0, 8}
    %a: i32[2,1,12] = broadcast_to(%i) {shape=[2,1,12]}
    %n: i32[2,1,12] = bitwise_and(%a, %a)
    %b: i32[2,16,12] = broadcast_to(%n) {shape=[2,16,12]}
    %g: f32[2,16,12] = gather_elements(%x, %b) {axis=2}
    %h: f32[2,16,12] = mul(%g, %w)
    %s: f32[2,16,12] = add(%g, %h)
    %r: f32[2,16,3,4] = reshape(%s) {shape=[2,16,3,4]}
    %y: f32[2,16,3,4] = mul(%r, %m)
    return %y
  })");
  const Graph turned = turn_gathers(graph);
  const Node& last = turned.node(turned.value(turned.outputs[0]).producer);
  EXPECT_EQ(last.op, Op::transpose);
  EXPECT_EQ(last.attributes.integers("perm"), (Dims{0, 3, 1, 2}));
  EXPECT_EQ(std::ranges::count(turned.nodes(), Op::transpose, &Node::op), 2) << "one there, one back";
  EXPECT_EQ(std::ranges::count(turned.nodes(), Op::gather_elements, &Node::op), 1);
  expect_the_same(graph, turned);
}

/// Colours get a fourth channel, which the work on them keeps, and which is left out behind it.
TEST(TurnGathers, ColoursAreRowsOfFour) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[2,3,9], %w: f32[2,1,12]) {
    %i = constant i32[1,1,12] {0, 8, 3, 3, 1, 7, 2, 5, 4, 6, 0, 8}
    %a: i32[2,1,12] = broadcast_to(%i) {shape=[2,1,12]}
    %n: i32[2,1,12] = bitwise_and(%a, %a)
    %b: i32[2,3,12] = broadcast_to(%n) {shape=[2,3,12]}
    %g: f32[2,3,12] = gather_elements(%x, %b) {axis=2}
    %h: f32[2,3,12] = mul(%g, %w)
    %y: f32[2,3,3,4] = reshape(%h) {shape=[2,3,3,4]}
    return %y
  })");
  const Graph turned = turn_gathers(graph);
  const auto gather = std::ranges::find(turned.nodes(), Op::gather_elements, &Node::op);
  EXPECT_EQ(turned.type(gather->outputs[0]).dims(), (Dims{2, 12, 4}));
  EXPECT_EQ(std::ranges::count(turned.nodes(), Op::slice, &Node::op), 1);
  expect_the_same(graph, turned);
}

/// What other work reads of it is transposed back: numbers for channels, and a reshape that takes channels apart.
TEST(TurnGathers, OtherWorkReadsWhatIsTransposedBack) {
  for (const char* end : {"%y: f32[2,16,12] = mul(%g, %c) return %y",
                          "%y: f32[2,4,4,12] = reshape(%g) {shape=[2,4,4,12]} return %y",
                          "%y: f32[2,16] = reduce_max(%g) {axes=[2], keepdims=0} return %y"}) {
    const Graph graph =
        parse_graph(std::string("graph g(%x: f32[2,16,9], %i: i32[2,1,12], %c: f32[1,16,1]) {\n"
                                "%z = constant i32[] {0} %l = constant i32[] {8}\n"
                                "%p: i32[2,1,12] = maximum(%i, %z) %q: i32[2,1,12] = minimum(%p, %l)\n"
                                "%b: i32[2,16,12] = broadcast_to(%q) {shape=[2,16,12]}\n"
                                "%g: f32[2,16,12] = gather_elements(%x, %b) {axis=2}\n") +
                    end + " }");
    const Graph turned = turn_gathers(graph);
    EXPECT_EQ(std::ranges::count(turned.nodes(), Op::transpose, &Node::op), 2);
    expect_the_same(graph, turned);
  }
}

TEST(TurnGathers, OthersStay) {
  for (
      const char* text :
      {// few channels, channels that are no whole vectors, few places of many pixels, a place for each channel, another axis
       "graph g(%x: f32[2,4,9], %i: i32[2,1,12]) { %b: i32[2,4,12] = broadcast_to(%i) {shape=[2,4,12]}"
       " %y: f32[2,4,12] = gather_elements(%x, %b) {axis=2} return %y }",
       "graph g(%x: f32[2,9,9], %i: i32[2,1,12]) { %b: i32[2,9,12] = broadcast_to(%i) {shape=[2,9,12]}"
       " %y: f32[2,9,12] = gather_elements(%x, %b) {axis=2} return %y }",
       "graph g(%x: f32[2,16,90], %i: i32[2,1,12]) { %b: i32[2,16,12] = broadcast_to(%i) {shape=[2,16,12]}"
       " %y: f32[2,16,12] = gather_elements(%x, %b) {axis=2} return %y }",
       "graph g(%x: f32[2,16,9], %i: i32[2,16,12]) { %y: f32[2,16,12] = gather_elements(%x, %i) {axis=2}"
       " return %y }",
       "graph g(%x: f32[2,9,16], %i: i32[2,9,1]) { %b: i32[2,9,16] = broadcast_to(%i) {shape=[2,9,16]}"
       " %y: f32[2,9,16] = gather_elements(%x, %b) {axis=1} return %y }"}) {
    const Graph graph = parse_graph(text);
    EXPECT_TRUE(same_structure(turn_gathers(graph), graph)) << text;
  }
}

}  // namespace
}  // namespace sylvite::turn_gathers_test
