#include <gmock/gmock.h>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::norm_by_statistics_test {
namespace {

class NormByStatistics : public testing::Test {
 protected:
  ValueId number(double x) { return graph.add_constant(Tensor::scalar_f32(static_cast<float>(x))); }
  ValueId mean(ValueId id) {
    const ValueId sum = graph.add(Op::reduce_sum, {id}, {{"axes", Dims{1}}, {"keepdims", std::int64_t{1}}});
    return graph.add(Op::mul, {sum, number(1.0 / 50)});
  }
  ValueId inverse(ValueId centered, double epsilon) {
    const ValueId variance = mean(graph.add(Op::mul, {centered, centered}));
    return graph.add(Op::rsqrt, {graph.add(Op::add, {variance, number(epsilon)})});
  }
  ValueId norm(Op op, const std::vector<ValueId>& inputs) {
    return graph.add(op, inputs, {{"axis", std::int64_t{1}}, {"epsilon", 1e-5}});
  }
  /// Whether no norm is left; what is computed stays the same.
  bool is_replaced() {
    const Graph after = norm_by_statistics(graph);
    const std::vector<Tensor> inputs = {random_tensor({6, 50}, 1), random_tensor({50}, 2),
                                        random_tensor({50}, 3)};
    const std::vector<Tensor> wanted = interpret(graph, inputs), got = interpret(after, inputs);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      for (std::int64_t e = 0; e < wanted[i].size(); ++e)
        EXPECT_NEAR(got[i].as_double(e), wanted[i].as_double(e), 1e-4);
    return std::ranges::none_of(
        after.nodes(), [](const Node& node) { return node.op == Op::layer_norm || node.op == Op::rms_norm; });
  }

  Graph graph;
  ValueId x = graph.add_input("x", f32({6, 50}));
  ValueId scale = graph.add_input("scale", f32({50}));
  ValueId shift = graph.add_input("shift", f32({50}));
};

TEST_F(NormByStatistics, KeptStatisticsAreUsed) {
  const ValueId middle = mean(x), deviation = inverse(graph.add(Op::sub, {x, middle}), 1e-5);
  graph.outputs = {norm(Op::layer_norm, {x, scale, shift}), middle, deviation};
  EXPECT_TRUE(is_replaced());
}

TEST_F(NormByStatistics, ARootMeanSquareIsUsed) {
  const ValueId root = inverse(x, 1e-5);
  graph.outputs = {norm(Op::rms_norm, {x, scale}), root};
  EXPECT_TRUE(is_replaced());
}

TEST_F(NormByStatistics, OthersStay) {
  const ValueId middle = mean(x), other = inverse(graph.add(Op::sub, {x, middle}), 1e-3);
  graph.outputs = {norm(Op::layer_norm, {x, scale, shift}), middle, other};
  EXPECT_FALSE(is_replaced());
  graph.outputs = {norm(Op::rms_norm, {x, scale}), middle, other};
  EXPECT_FALSE(is_replaced());
}

}  // namespace
}  // namespace sylvite::norm_by_statistics_test
