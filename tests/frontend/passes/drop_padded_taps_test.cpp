// Filters that meet nothing but padding at their ends, shown by equal graphs.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "frontend/graph/copy.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/verifier.h"
#include "frontend/passes/pass_list.h"
#include "sylvite/graph_text.h"
#include "tests/frontend/ops/run_op.h"

namespace sylvite::drop_padded_taps_test {
namespace {

struct Taps {
  const char* name;
  const char* input;
  const char* before;
  const char* after;
};

Graph graph_of(const char* input, const char* lines) {
  return parse_graph(std::string("graph g(") + input + ") {\n" + lines + "}\n");
}

class DropPaddedTaps : public testing::TestWithParam<Taps> {};

TEST_P(DropPaddedTaps, GivesTheExpectedGraph) {
  const Graph before = graph_of(GetParam().input, GetParam().before);
  const Graph after = drop_padded_taps(before, false);
  verify(after);
  EXPECT_EQ(graph_text(canonical(after)),
            graph_text(canonical(graph_of(GetParam().input, GetParam().after))));
  const Tensor x = counting(before.type(before.inputs[0]).dims());
  EXPECT_EQ(values(interpret(after, {x})[0]), values(interpret(before, {x})[0]));
}

const Taps taps[] = {
    {"padded_taps", "%x: f32[1,1,3,4]",
     "  %w = constant f32[1,1,3,3] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0}\n"
     "  %a: f32[1,1,3,4] = conv(%x, %w) {dilations=[3,2], groups=1, pads=[3,2,3,2], strides=[1,1]}\n  return "
     "%a\n",
     "  %w = constant f32[1,1,3,3] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0}\n"
     "  %s: f32[1,1,1,3] = slice(%w) {sizes=[1,1,1,3], starts=[0,0,1,0], steps=[1,1,1,1]}\n"
     "  %a: f32[1,1,3,4] = conv(%x, %s) {dilations=[1,2], groups=1, pads=[0,2,0,2], strides=[1,1]}\n  return "
     "%a\n"},
    {"padded_taps_of_one_side", "%x: f32[1,1,2]",
     "  %w = constant f32[1,1,4] {1.0, 2.0, 3.0, 4.0}\n"
     "  %a: f32[1,1,1] = conv(%x, %w) {dilations=[2], groups=1, pads=[3,2], strides=[2]}\n  return %a\n",
     "  %w = constant f32[1,1,4] {1.0, 2.0, 3.0, 4.0}\n"
     "  %s: f32[1,1,2] = slice(%w) {sizes=[1,1,2], starts=[0,0,1], steps=[1,1,1]}\n"
     "  %a: f32[1,1,1] = conv(%x, %s) {dilations=[2], groups=1, pads=[1,0], strides=[2]}\n  return %a\n"},
    {"taps_that_meet_the_image", "%x: f32[1,1,3]",
     "  %w = constant f32[1,1,3] {1.0, 2.0, 3.0}\n"
     "  %a: f32[1,1,3] = conv(%x, %w) {dilations=[2], groups=1, pads=[2,2], strides=[1]}\n  return %a\n",
     "  %w = constant f32[1,1,3] {1.0, 2.0, 3.0}\n"
     "  %a: f32[1,1,3] = conv(%x, %w) {dilations=[2], groups=1, pads=[2,2], strides=[1]}\n  return %a\n"},
};

INSTANTIATE_TEST_SUITE_P(Filters, DropPaddedTaps, testing::ValuesIn(taps),
                         [](const auto& test) { return test.param.name; });

TEST(DropPaddedTaps, KeepsFiltersOfSingleChannelsWhereSizesDiffer) {
  const Graph alone = graph_of(taps[0].input, taps[0].before);
  EXPECT_TRUE(same_structure(drop_padded_taps(alone, true), alone));
  const Graph dense =
      graph_of("%x: f32[1,2,1]",
               "  %w = constant f32[1,2,3] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}\n"
               "  %a: f32[1,1,1] = conv(%x, %w) {dilations=[1], groups=1, pads=[1,1], strides=[1]}\n"
               "  return %a\n");
  EXPECT_TRUE(same_structure(drop_padded_taps(dense, true), drop_padded_taps(dense, false)));
  EXPECT_FALSE(same_structure(drop_padded_taps(dense, true), dense));
}

/// Images of n pixels need 2 n of the twenty taps: few of them as they are, else sixteen or all, and the same ones.
TEST(DropPaddedTaps, LongFiltersKeepAPowerOfTwoWhereSizesDiffer) {
  const auto long_filter = [](int extent) {
    std::string weights = "1.0";
    for (int i = 1; i < 40; ++i) weights += fmt::format(", {}.0", i % 7);
    return graph_of(
        fmt::format("%x: f32[1,2,{}]", extent).c_str(),
        fmt::format(
            "  %w = constant f32[1,2,20] {{{}}}\n"
            "  %a: f32[1,1,{}] = conv(%x, %w) {{dilations=[1], groups=1, pads=[10,10], strides=[1]}}\n"
            "  return %a\n",
            weights, extent + 1)
            .c_str());
  };
  const std::pair<int, int> kept[] = {{3, 6}, {4, 8}, {5, 16}, {6, 16}, {8, 16}, {9, 20}, {12, 20}};
  for (const auto& [extent, taps_left] : kept) {
    const Graph before = long_filter(extent);
    const Graph after = drop_padded_taps(before, true);
    verify(after);
    const Node& conv = after.nodes().back();
    EXPECT_EQ(after.type(conv.inputs[1]).dims()[2], taps_left) << extent;
    if (taps_left == 16) EXPECT_EQ(conv.attributes.integers("pads"), (Dims{8, 8})) << extent;
    const Tensor x = counting(before.type(before.inputs[0]).dims());
    EXPECT_EQ(values(interpret(after, {x})[0]), values(interpret(before, {x})[0])) << extent;
  }
}

/// Zeros of the padding times an infinity are no numbers.
TEST(DropPaddedTaps, KeepsFiltersWithInfinities) {
  const auto is_kept = [](const char* type, const char* last) {
    const std::string lines = fmt::format(
        "  %w = constant {0}[1,1,3] {{1.0, -2.0, {1}}}\n"
        "  %a: {0}[1,1,1] = conv(%x, %w) {{dilations=[1], groups=1, pads=[1,1], strides=[1]}}\n"
        "  return %a\n",
        type, last);
    const Graph graph = graph_of(fmt::format("%x: {}[1,1,1]", type).c_str(), lines.c_str());
    return same_structure(drop_padded_taps(graph, false), graph);
  };
  for (const char* type : {"f32", "f16"}) {
    for (const char* last : {"inf", "-inf", "nan"}) EXPECT_TRUE(is_kept(type, last)) << type << " " << last;
    EXPECT_FALSE(is_kept(type, "-3.0")) << type;
  }
}

}  // namespace
}  // namespace sylvite::drop_padded_taps_test
