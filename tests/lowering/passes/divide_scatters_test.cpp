#include <gtest/gtest.h>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"
#include "sylvite/graph_text.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::divide_scatters_test {
namespace {

std::string scatter(const std::string& table, const std::string& updates, const std::string& rest,
                    const std::string& reduction) {
  return "graph g(%i: i64[" + updates + ",1], %u: f32[" + updates + rest +
         "]) {\n  %one = constant f32[] {1.0}\n  %x: f32[" + table + rest +
         "] = broadcast_to(%one) {shape=[" + table + rest + "]}\n  %y: f32[" + table + rest +
         "] = scatter_nd(%x, %i, %u) {reduction=\"" + reduction + "\"}\n  return %y\n}\n";
}

TEST(DivideScatters, KeepsTheResult) {
  for (const std::string& rest : {std::string(",6"), std::string(",2,3"), std::string()}) {
    const Graph graph = parse_graph(scatter("9", "50,100", rest, "add")), divided = divide_scatters(graph);
    EXPECT_FALSE(same_structure(divided, graph));
    Tensor indices(DType::i64, graph.type(graph.inputs[0]).dims());
    for (std::int64_t i = 0; i < indices.size(); ++i) indices.set_int64(i, i % 3 == 0 ? i % 9 : -1 - i % 2);
    Tensor updates(DType::f32, graph.type(graph.inputs[1]).dims());
    for (std::int64_t i = 0; i < updates.size(); ++i)
      updates.set_double(i, static_cast<double>(i * 5 % 11) - 5);
    const Tensor wanted = interpret(graph, {indices, updates}).at(0),
                 got = interpret(divided, {indices, updates}).at(0);
    ASSERT_EQ(wanted.dims(), got.dims());
    for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(wanted.as_double(i), got.as_double(i)) << i;
  }
}

TEST(DivideScatters, OthersStay) {
  for (const std::string& text : {scatter("9", "50,100", ",6", "none"), scatter("400", "50,100", ",6", "add"),
                                  scatter("9", "50,20", ",6", "add"), scatter("9", "5003", ",6", "add")}) {
    const Graph graph = parse_graph(text);
    EXPECT_TRUE(same_structure(divide_scatters(graph), graph)) << text;
  }
}

}  // namespace
}  // namespace sylvite::divide_scatters_test
