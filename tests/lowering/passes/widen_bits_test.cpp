#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "frontend/ops/op_table.h"
#include "lowering/passes/pass_list.h"
#include "sylvite/graph_text.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::widen_bits_test {
namespace {

Graph product(int rows, const char* op, bool has_zeros, int bits) {
  return parse_graph(
      fmt::format("graph g(%a: f32[2,{0},40], %w: u8[6,3,{1}], %s: f32[6,3]{2}) {{\n"
                  "%v: f32[2,{0},6] = {3}(%a, %w, %s{4}) {{bits={5}, block=16}} return %v }}",
                  rows, 16 * bits / 8, has_zeros ? ", %z: u8[6,3]" : "", op, has_zeros ? ", %z" : "", bits));
}

std::vector<Tensor> filled_inputs(const Graph& graph) {
  std::vector<Tensor> inputs;
  for (const ValueId id : graph.inputs) {
    Tensor tensor(graph.type(id).dtype, graph.type(id).dims());
    for (std::int64_t i = 0; i < tensor.size(); ++i)
      if (tensor.dtype() == DType::u8)
        tensor.set_int64(i, i * 37 % 256);
      else
        tensor.set_double(i, static_cast<double>(i * 11 % 17) / 8 - 1);
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

bool has_bits(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) { return multiplies_bits(node.op); });
}

TEST(WidenBits, ResultsStay) {
  for (const int rows : {1, 5}) {
    for (const char* op : {"matmul_bits", "quantized_matmul_bits"}) {
      for (const int bits : {2, 4, 8}) {
        const Graph graph = product(rows, op, bits == 4, bits);
        const Graph widened = widen_bits(graph);
        EXPECT_FALSE(has_bits(widened));
        EXPECT_EQ(widened.type(widened.outputs[0]), graph.type(graph.outputs[0]));
        const std::vector<Tensor> inputs = filled_inputs(graph);
        expect_close(interpret(widened, inputs).at(0), interpret(graph, inputs).at(0));
      }
    }
  }
}

/// As sums of plain products; many rows by a matmul.
TEST(WidenBits, AFewRowsStoreNoWeights) {
  EXPECT_EQ(graph_text(widen_bits(product(1, "matmul_bits", false, 4))).find("= matmul"), std::string::npos);
  EXPECT_NE(graph_text(widen_bits(product(5, "matmul_bits", false, 4))).find("= matmul"), std::string::npos);
}

TEST(WidenBits, OnlyWhereAskedFor) {
  const Graph graph = product(5, "matmul_bits", true, 4);
  const auto& passes = lowering_passes();
  const auto row = std::ranges::find(passes, "widen_bits", &Pass<LoweringOptions>::name);
  ASSERT_NE(row, passes.end());
  LoweringOptions options;
  EXPECT_FALSE(row->applies(options));
  options.widen_bits = true;
  EXPECT_TRUE(row->applies(options));
  EXPECT_TRUE(has_bits(graph));
}

}  // namespace
}  // namespace sylvite::widen_bits_test
