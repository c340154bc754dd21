// Products whose weights meet zeros, or make what nobody reads, shown by equal graphs.

#include <gtest/gtest.h>

#include "frontend/graph/copy.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/verifier.h"
#include "frontend/passes/pass_list.h"
#include "sylvite/graph_text.h"
#include "tests/frontend/ops/run_op.h"

namespace sylvite::trim_products_test {
namespace {

struct Trimmed {
  const char* name;
  const char* before;
  const char* after;
};

Graph graph_of(const char* lines) {
  return parse_graph(
      std::string("graph g(%x: f32[2,3,2]) {\n"
                  "  %w = constant f32[4,3] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0}\n"
                  "  %v = constant f32[2,4] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}\n") +
      lines + "}\n");
}

class TrimProducts : public testing::TestWithParam<Trimmed> {};

TEST_P(TrimProducts, GivesTheExpectedGraph) {
  const Graph before = graph_of(GetParam().before);
  const Graph after = trim_products(before);
  verify(after);
  EXPECT_EQ(graph_text(canonical(after)), graph_text(canonical(graph_of(GetParam().after))));
  const Tensor x = counting(before.type(before.inputs[0]).dims());
  EXPECT_EQ(values(interpret(after, {x})[0]), values(interpret(before, {x})[0]));
}

constexpr const char* padded_rows =
    "  %p: f32[2,4,2] = pad(%x) {low=[0,0,0], high=[0,1,0], mode=\"constant\", interior=[0,0,0]}\n"
    "  %a: f32[2,4,4] = matmul(%p, %v)\n  return %a\n";
constexpr const char* two_readers =
    "  %a: f32[2,3,4] = matmul(%x, %v)\n"
    "  %s: f32[2,3,2] = slice(%a) {starts=[0,0,0], sizes=[2,3,2], steps=[1,1,1]}\n"
    "  %t: f32[2,3,2] = slice(%a) {starts=[0,0,2], sizes=[2,3,2], steps=[1,1,1]}\n"
    "  %y: f32[2,3,2] = add(%s, %t)\n  return %y\n";
constexpr const char* sliced_rows =
    "  %a: f32[2,3,4] = matmul(%x, %v)\n"
    "  %s: f32[2,2,4] = slice(%a) {starts=[0,1,0], sizes=[2,2,4], steps=[1,1,1]}\n  return %s\n";
constexpr const char* turned_rows =
    "  %a: f32[2,3,4] = matmul(%x, %v)\n"
    "  %s: f32[2,3,2] = slice(%a) {starts=[1,0,0], sizes=[2,3,2], steps=[-1,1,1]}\n  return %s\n";

const Trimmed cases[] = {
    {"zeros_behind_a_signal",
     "  %p: f32[2,3,4] = pad(%x) {low=[0,0,1], high=[0,0,1], mode=\"constant\", interior=[0,0,0]}\n"
     "  %r: f32[6,4] = reshape(%p) {shape=[6,4]}\n"
     "  %a: f32[6,3] = matmul(%r, %w)\n  return %a\n",
     "  %s: f32[2,3] = slice(%w) {starts=[1,0], sizes=[2,3], steps=[1,1]}\n"
     "  %r: f32[6,2] = reshape(%x) {shape=[6,2]}\n"
     "  %a: f32[6,3] = matmul(%r, %s)\n  return %a\n"},
    {"every_second_column",
     "  %r: f32[6,2] = reshape(%x) {shape=[6,2]}\n"
     "  %a: f32[6,4] = matmul(%r, %v)\n"
     "  %b: f32[2,3,4] = reshape(%a) {shape=[2,3,4]}\n"
     "  %s: f32[2,3,2] = slice(%b) {starts=[0,0,1], sizes=[2,3,2], steps=[1,1,2]}\n  return %s\n",
     "  %r: f32[6,2] = reshape(%x) {shape=[6,2]}\n"
     "  %s: f32[2,2] = slice(%v) {starts=[0,1], sizes=[2,2], steps=[1,2]}\n"
     "  %a: f32[6,2] = matmul(%r, %s)\n"
     "  %b: f32[2,3,2] = reshape(%a) {shape=[2,3,2]}\n  return %b\n"},
    {"zeros_below_rows_stay", padded_rows, padded_rows},
    {"what_others_read_stays", two_readers, two_readers},
    {"rows_stay", sliced_rows, sliced_rows},
    {"turned_rows_stay", turned_rows, turned_rows},
};

INSTANTIATE_TEST_SUITE_P(Graphs, TrimProducts, testing::ValuesIn(cases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace sylvite::trim_products_test
