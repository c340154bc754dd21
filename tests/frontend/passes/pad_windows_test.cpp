// Zeros around images as padding of convolutions, shown by equal graphs.

#include <gtest/gtest.h>

#include "frontend/graph/copy.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/verifier.h"
#include "frontend/passes/pass_list.h"
#include "sylvite/graph_text.h"
#include "tests/frontend/ops/run_op.h"

namespace sylvite::pad_windows_test {
namespace {

struct Padded {
  const char* name;
  const char* before;
  const char* after;
};

Graph graph_of(const char* lines) {
  return parse_graph(std::string("graph g(%x: f32[1,1,3,4]) {\n"
                                 "  %w = constant f32[1,1,2,2] {1.0, 2.0, 3.0, 4.0}\n") +
                     lines + "}\n");
}

class PadWindows : public testing::TestWithParam<Padded> {};

TEST_P(PadWindows, GivesTheExpectedGraph) {
  const Graph before = graph_of(GetParam().before);
  const Graph after = pad_windows(before);
  verify(after);
  EXPECT_EQ(graph_text(canonical(after)), graph_text(canonical(graph_of(GetParam().after))));
  const Tensor x = counting(before.type(before.inputs[0]).dims());
  EXPECT_EQ(values(interpret(after, {x})[0]), values(interpret(before, {x})[0]));
}

constexpr const char* cropped =
    "  %p: f32[1,1,4,3] = pad(%x) {low=[0,0,1,-1], high=[0,0,0,0], mode=\"constant\", interior=[0,0,0,0]}\n"
    "  %a: f32[1,1,3,2] = conv(%p, %w) {dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[1,1]}\n  return "
    "%a\n";
constexpr const char* of_ones =
    "  %c = constant f32[] {1.0}\n"
    "  %p: f32[1,1,4,4] = pad(%x, %c) {low=[0,0,1,0], high=[0,0,0,0], mode=\"constant\", "
    "interior=[0,0,0,0]}\n"
    "  %a: f32[1,1,3,3] = conv(%p, %w) {dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[1,1]}\n  return "
    "%a\n";
constexpr const char* of_edges =
    "  %p: f32[1,1,4,4] = pad(%x) {low=[0,0,1,0], high=[0,0,0,0], mode=\"edge\", interior=[0,0,0,0]}\n"
    "  %a: f32[1,1,3,3] = conv(%p, %w) {dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[1,1]}\n  return "
    "%a\n";
constexpr const char* sliced_from_zeros =
    "  %p: f32[1,1,5,4] = pad(%x) {low=[0,0,2,0], high=[0,0,0,0], mode=\"constant\", interior=[0,0,0,0]}\n"
    "  %a: f32[1,1,2,4] = slice(%p) {starts=[0,0,0,0], sizes=[1,1,2,4], steps=[1,1,1,1]}\n  return %a\n";

const Padded cases[] = {
    {"pads_join",
     "  %p: f32[1,1,5,5] = pad(%x) {low=[0,0,2,0], high=[0,0,0,1], mode=\"constant\", interior=[0,0,0,0]}\n"
     "  %a: f32[1,1,5,6] = conv(%p, %w) {dilations=[1,1], groups=1, pads=[0,1,1,1], strides=[1,1]}\n  return "
     "%a\n",
     "  %a: f32[1,1,5,6] = conv(%x, %w) {dilations=[1,1], groups=1, pads=[2,1,1,2], strides=[1,1]}\n  return "
     "%a\n"},
    {"a_slice_of_zeros_and_values",
     "  %p: f32[1,1,5,6] = pad(%x) {low=[0,0,2,1], high=[0,0,0,1], mode=\"constant\", interior=[0,0,0,0]}\n"
     "  %s: f32[1,1,4,6] = slice(%p) {starts=[0,0,0,0], sizes=[1,1,4,6], steps=[1,1,1,1]}\n"
     "  %a: f32[1,1,3,5] = conv(%s, %w) {dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[1,1]}\n  return "
     "%a\n",
     "  %s: f32[1,1,2,4] = slice(%x) {starts=[0,0,0,0], sizes=[1,1,2,4], steps=[1,1,1,1]}\n"
     "  %a: f32[1,1,3,5] = conv(%s, %w) {dilations=[1,1], groups=1, pads=[2,1,0,1], strides=[1,1]}\n  return "
     "%a\n"},
    {"what_is_cropped_stays", cropped, cropped},
    {"other_numbers_stay", of_ones, of_ones},
    {"edges_stay", of_edges, of_edges},
    {"zeros_alone_stay", sliced_from_zeros, sliced_from_zeros},
};

INSTANTIATE_TEST_SUITE_P(Graphs, PadWindows, testing::ValuesIn(cases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace sylvite::pad_windows_test
