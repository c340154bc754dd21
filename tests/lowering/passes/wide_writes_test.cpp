#include "lowering/passes/wide_writes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "frontend/ops/op_table.h"
#include "frontend/passes/store_narrow.h"
#include "sylvite/graph_text.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::wide_writes_test {
namespace {

/// A cache that rows are written into, and what reads it.
Graph cache(const std::string& write) {
  return parse_graph(
      "graph g(%x: f32[2,3,2,4], %places: i64[2,3,2,4], %past: f32[2,3,12,4]) {\n"
      "  %k = constant f32[4,4] {1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1}\n"
      "  %new: f32[2,3,2,4] = matmul(%x, %k)\n" +
      write +
      "  %y: f32[2,3,4] = reduce_sum(%next) {axes=[2], keepdims=0}\n"
      "  return %y, %next to %past\n}\n");
}

std::int64_t writes_of(const Plan& plan) {
  std::int64_t count = 0;
  for (const Kernel& kernel : plan.kernels)
    for (const Node& node : kernel.body.nodes()) count += writes_in_place(node.op) ? 1 : 0;
  return count;
}

bool converts(const Graph& graph, const Dims& dims, DType to) {
  return std::ranges::any_of(graph.nodes(), [&](const Node& node) {
    return node.op == Op::cast && graph.type(node.outputs[0]).dims() == dims &&
           graph.type(node.outputs[0]).dtype == to;
  });
}

const std::string scatter =
    "  %next: f32[2,3,12,4] = scatter_elements(%past, %places, %new) {axis=2, reduction=\"none\"}\n";

TEST(WideWrites, StatesOfNarrowModelsAreWrittenWhereTheyLie) {
  const Graph graph = store_narrow(cache(scatter), DType::bf16);
  ASSERT_EQ(graph.states.size(), 1U);
  EXPECT_TRUE(converts(graph, {2, 3, 12, 4}, DType::f32));
  const Graph made = widen_writes(graph, graph.states, {});
  EXPECT_FALSE(converts(made, {2, 3, 12, 4}, DType::f32)) << "all of the state";
  EXPECT_TRUE(converts(made, {2, 3, 2, 4}, DType::f32)) << "what is written";
  const std::vector<Tensor> inputs = random_inputs(graph);
  // What lay there before is rounded only where it is read in the narrow type.
  const std::vector<Tensor> wanted = interpret(graph, inputs), got = interpret(made, inputs);
  expect_close(got[0], wanted[0], 2e-2);
  EXPECT_EQ(writes_of(lower(graph)), 1);
  Graph given = graph;  // by the caller, who has its next value
  given.overwrites = std::exchange(given.states, {});
  expect_faithful(given, lower(given), 2e-2);
}

/// A cache of keys that are the values, too: one query attends to all of it as it is stored, many in the narrow type.
TEST(WideWrites, FewQueriesAttendToTheStateAsItIs) {
  for (const std::int64_t queries : {1, 20}) {
    const std::string q = "f32[2,3," + std::to_string(queries) + ",4]";
    const Graph graph = store_narrow(
        parse_graph(
            "graph g(%x: f32[2,3,2,4], %places: i64[2,3,2,4], %q: " + q + ", %past: f32[2,3,12,4]) {\n" +
            "  %next: f32[2,3,12,4] = scatter_elements(%past, %places, %x) {axis=2, reduction=\"none\"}\n"
            "  %y: " +
            q +
            " = attention(%q, %next, %next) {causal=0, scale=0.5, softcap=0.0}\n"
            "  return %y, %next to %past\n}\n"),
        DType::bf16);
    const Graph made = widen_writes(graph, graph.states, {});
    EXPECT_EQ(converts(made, {2, 3, 12, 4}, DType::bf16), queries > 1);
    const std::vector<Tensor> inputs = random_inputs(graph);
    expect_close(interpret(made, inputs)[0], interpret(graph, inputs)[0], 2e-2);
  }
}

TEST(WideWrites, WhatElseIsDoneBetweenTheTypesStays) {
  for (const char* write :
       {"  %sum: f32[2,3,12,4] = scatter_elements(%past, %places, %new) {axis=2, reduction=\"add\"}\n"
        "  %next: f32[2,3,12,4] = relu(%sum)\n",
        "  %next: f32[2,3,12,4] = relu(%past)\n"}) {
    const Graph graph = store_narrow(cache(write), DType::bf16);
    EXPECT_EQ(graph_text(widen_writes(graph, graph.states, {})), graph_text(graph));
  }
}

}  // namespace
}  // namespace sylvite::wide_writes_test
