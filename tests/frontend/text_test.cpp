#include "frontend/text.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sylvite {
namespace {

TEST(Text, RoundTripsAGraph) {
  const std::string text = R"(graph net(%x: f32[1,16,4,4], %"a b": i64[N]) {
  %w = constant f32[1] {0.1}
  %v1: f32[1,16,4,4]@c16 = add(%x, %w)
  %v2: f32[1,16,4,1], %v3: i64[1,16,4,1] = top_k(%v1) {axis=3, k=1, largest=1}
  %v4: f32[1,16,4,1] = layer_norm(%v2, _, %w) {axis=3, epsilon=1e-05}
  return %v4, %v3
}
)";
  EXPECT_EQ(graph_text(parse_graph(text)), text);
}

}  // namespace
}  // namespace sylvite
