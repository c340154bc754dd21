#include "frontend/graph/views.h"

#include <gtest/gtest.h>

#include "sylvite/graph_text.h"

namespace sylvite {
namespace {

/// Of the right operand of the graph's last matmul: the name, with a mark for the transpose; "" for none.
std::string own_weight(const std::string& body) {
  const Graph graph = parse_graph("graph g(%x: f32[2,4], %w: f32[4,4]) {\n" + body + "}");
  const OwnOperand own = own_operand(graph, graph.uses(), graph.nodes().back().inputs.at(1));
  return own.id == no_value ? "" : graph.value(own.id).name + (own.is_transposed ? "'" : "");
}

TEST(OwnOperand, IsReadOnceAndNotComputed) {
  const std::string turned = "  %t: f32[4,4] = transpose(%w) {perm=[1,0]}\n";
  const std::string product = "  %m: f32[2,4] = matmul(%x, %t)\n  return %m\n";
  EXPECT_EQ(own_weight("  %m: f32[2,4] = matmul(%x, %w)\n  return %m\n"), "w");
  EXPECT_EQ(own_weight(turned + product), "w'");
  EXPECT_EQ(own_weight(turned + "  %n: f32[4,4] = neg(%t)\n" + product), "");
  EXPECT_EQ(own_weight(turned + "  %n: f32[4,4] = neg(%w)\n" + product), "");
  EXPECT_EQ(own_weight("  %t: f32[4,4] = neg(%w)\n" + product), "");
}

}  // namespace
}  // namespace sylvite
