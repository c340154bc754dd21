// Writes to places known ahead, against what scatters give.

#include <algorithm>
#include <string>

#include "frontend/graph/graph_builder.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/verifier.h"
#include "frontend/passes/pass_list.h"
#include "sylvite/graph_text.h"
#include "tests/frontend/ops/run_op.h"

namespace sylvite::place_ranges_test {
namespace {

std::int64_t scatters_in(const Graph& graph) {
  return std::ranges::count_if(graph.nodes(), [](const Node& node) {
    return node.op == Op::scatter_nd || node.op == Op::scatter_elements;
  });
}

Tensor shifted(const Dims& dims, std::int64_t first) {
  Tensor tensor(DType::f32, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_int64(i, first + i);
  return tensor;
}

Graph placed(const char* name, const std::string& signature, const std::string& lines) {
  SCOPED_TRACE(name);
  const Graph before = parse_graph("graph g(" + signature + ") {\n" + lines + "}\n");
  Graph after = place_ranges(before);
  verify(after);
  std::vector<Tensor> inputs;
  inputs.reserve(before.inputs.size());
  for (const ValueId input : before.inputs)
    inputs.push_back(shifted(before.type(input).dims(), 100 * static_cast<std::int64_t>(inputs.size())));
  EXPECT_EQ(values(interpret(after, inputs)[0]), values(interpret(before, inputs)[0]));
  return after;
}

struct Case {
  const char* name;
  const char* signature;
  const char* lines;
  std::int64_t left = 0;  // scatters that stay
};

class PlaceRanges : public testing::TestWithParam<Case> {};

TEST_P(PlaceRanges, GivesWhatScattersGive) {
  const Graph after = placed(GetParam().name, GetParam().signature, GetParam().lines);
  EXPECT_EQ(scatters_in(after), GetParam().left);
}

const Case cases[] = {
    {"rows", "%x: f32[8,3], %u: f32[3,3]",
     "  %i = constant i64[3,1] {2, 3, 4}\n"
     "  %y: f32[8,3] = scatter_nd(%x, %i, %u) {reduction=\"none\"}\n  return %y\n"},
    {"rows_from_the_end", "%x: f32[8,3], %u: f32[2,3]",
     "  %i = constant i64[2,1] {-2, -1}\n"
     "  %y: f32[8,3] = scatter_nd(%x, %i, %u) {reduction=\"none\"}\n  return %y\n"},
    {"rows_that_add", "%x: f32[8,3], %u: f32[3,3]",
     "  %i = constant i64[3,1] {2, 3, 4}\n"
     "  %y: f32[8,3] = scatter_nd(%x, %i, %u) {reduction=\"add\"}\n  return %y\n"},
    {"a_box", "%x: f32[4,5,2], %u: f32[2,3,2]",
     "  %i = constant i64[2,3,2] {1, 2, 1, 3, 1, 4, 2, 2, 2, 3, 2, 4}\n"
     "  %y: f32[4,5,2] = scatter_nd(%x, %i, %u) {reduction=\"none\"}\n  return %y\n"},
    {"a_box_that_adds", "%x: f32[4,5], %u: f32[2,2]",
     "  %i = constant i64[2,2,2] {0, 2, 0, 3, 1, 2, 1, 3}\n"
     "  %y: f32[4,5] = scatter_nd(%x, %i, %u) {reduction=\"add\"}\n  return %y\n"},
    {"a_column", "%x: f32[3,5], %u: f32[3]",
     "  %i = constant i64[3,2] {0, 4, 1, 4, 2, 4}\n"
     "  %y: f32[3,5] = scatter_nd(%x, %i, %u) {reduction=\"none\"}\n  return %y\n"},
    {"all", "%x: f32[3,2], %u: f32[3,2]",
     "  %i = constant i64[3,1] {0, 1, 2}\n"
     "  %y: f32[3,2] = scatter_nd(%x, %i, %u) {reduction=\"none\"}\n  return %y\n"},
    {"every_other", "%x: f32[2,6], %u: f32[2,3]",
     "  %i = constant i64[2,3] {1, 3, 5, 1, 3, 5}\n"
     "  %y: f32[2,6] = scatter_elements(%x, %i, %u) {axis=1, reduction=\"none\"}\n  return %y\n"},
    {"one_place_twice", "%x: f32[4,2], %u: f32[3,2]",
     "  %i = constant i64[3,1] {3, 1, 3}\n"
     "  %y: f32[4,2] = scatter_nd(%x, %i, %u) {reduction=\"none\"}\n  return %y\n"},
    {"an_order", "%x: f32[3,2], %u: f32[3,2]",
     "  %i = constant i64[3,1] {2, 0, 1}\n"
     "  %y: f32[3,2] = scatter_nd(%x, %i, %u) {reduction=\"none\"}\n  return %y\n"},
    {"elements", "%x: f32[2,6], %u: f32[2,2]",
     "  %i = constant i64[2,2] {3, 4, 3, 4}\n"
     "  %y: f32[2,6] = scatter_elements(%x, %i, %u) {axis=1, reduction=\"none\"}\n  return %y\n"},
    {"elements_of_the_first_rows", "%x: f32[3,6], %u: f32[2,2]",
     "  %i = constant i64[2,2] {3, 4, 3, 4}\n"
     "  %y: f32[3,6] = scatter_elements(%x, %i, %u) {axis=1, reduction=\"none\"}\n  return %y\n"},
    {"repeated_indices", "%x: f32[2,6], %u: f32[2,2]",
     "  %i = constant i64[2] {3, 4}\n  %b: i64[2,2] = broadcast_to(%i) {shape=[2,2]}\n"
     "  %y: f32[2,6] = scatter_elements(%x, %b, %u) {axis=1, reduction=\"none\"}\n  return %y\n"},
    {"different_columns", "%x: f32[2,6], %u: f32[2,2]",
     "  %i = constant i64[2,2] {3, 4, 2, 3}\n"
     "  %y: f32[2,6] = scatter_elements(%x, %i, %u) {axis=1, reduction=\"none\"}\n  return %y\n",
     1},
    {"a_diagonal", "%x: f32[3,3], %u: f32[3]",
     "  %i = constant i64[3,2] {0, 0, 1, 1, 2, 2}\n"
     "  %y: f32[3,3] = scatter_nd(%x, %i, %u) {reduction=\"none\"}\n  return %y\n",
     1},
    {"columns_ahead_of_rows", "%x: f32[3,3], %u: f32[2,3]",
     "  %i = constant i64[2,3,2] {0, 1, 1, 1, 2, 1, 0, 2, 1, 2, 2, 2}\n"
     "  %y: f32[3,3] = scatter_nd(%x, %i, %u) {reduction=\"none\"}\n  return %y\n",
     1},
    {"sums_at_one_place", "%x: f32[4,2], %u: f32[3,2]",
     "  %i = constant i64[3,1] {3, 1, 3}\n"
     "  %y: f32[4,2] = scatter_nd(%x, %i, %u) {reduction=\"add\"}\n  return %y\n",
     1},
    {"places_out_of_range", "%x: f32[4,2], %u: f32[2,2]",
     "  %i = constant i64[2,1] {3, 4}\n"
     "  %y: f32[4,2] = scatter_nd(%x, %i, %u) {reduction=\"none\"}\n  return %y\n",
     1},
};

INSTANTIATE_TEST_SUITE_P(Cases, PlaceRanges, testing::ValuesIn(cases),
                         [](const auto& tried) { return std::string(tried.param.name); });

TEST(PlaceRanges, AChainIsOneConcat) {
  const Graph after = placed("a_chain", "%x: f32[6,2], %a: f32[2,2], %b: f32[3,2]",
                             "  %i = constant i64[2,1] {0, 1}\n  %j = constant i64[3,1] {2, 3, 4}\n"
                             "  %y: f32[6,2] = scatter_nd(%x, %i, %a) {reduction=\"none\"}\n"
                             "  %z: f32[6,2] = scatter_nd(%y, %j, %b) {reduction=\"none\"}\n  return %z\n");
  EXPECT_EQ(std::ranges::count(after.nodes(), Op::concat, &Node::op), 1);
  EXPECT_EQ(std::ranges::count(after.nodes(), Op::slice, &Node::op), 1);
}

TEST(PlaceRanges, WhatIsOverwrittenInTransposedOrderIsPutTogetherAsItLies) {
  const Graph after = simplify_views(fold_constants(
      placed("transposed", "%a: f32[2,3], %b: f32[2,1]",
             "  %z = constant f32[4,2] {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}\n"
             "  %i = constant i64[3,1] {0, 1, 2}\n  %j = constant i64[1,1] {3}\n"
             "  %c: f32[3,2] = transpose(%a) {perm=[1,0]}\n  %d: f32[1,2] = transpose(%b) {perm=[1,0]}\n"
             "  %y: f32[4,2] = scatter_nd(%z, %i, %c) {reduction=\"none\"}\n"
             "  %w: f32[4,2] = scatter_nd(%y, %j, %d) {reduction=\"none\"}\n"
             "  %r: f32[2,4] = transpose(%w) {perm=[1,0]}\n  return %r\n")));
  EXPECT_EQ(std::ranges::count(after.nodes(), Op::concat, &Node::op), 1);
  EXPECT_EQ(std::ranges::count(after.nodes(), Op::transpose, &Node::op), 0);
}

TEST(PlaceRanges, StatesAreWrittenWhereTheyLie) {
  Graph graph = parse_graph(
      "graph g(%x: f32[8,3], %u: f32[3,3]) {\n  %i = constant i64[3,1] {2, 3, 4}\n"
      "  %y: f32[8,3] = scatter_nd(%x, %i, %u) {reduction=\"none\"}\n  return %y\n}\n");
  graph.states.push_back({0, 0});
  EXPECT_TRUE(same_structure(place_ranges(graph), graph));
}

}  // namespace
}  // namespace sylvite::place_ranges_test
