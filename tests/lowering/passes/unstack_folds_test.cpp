#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::unstack_folds_test {
namespace {

/// Values of `dims`, side by side along a new axis.
ValueId stack(Graph& graph, const std::vector<ValueId>& values, const Dims& dims, std::int64_t axis) {
  std::vector<ValueId> parts;
  Dims wide = dims;
  wide.insert(wide.begin() + axis, 1);
  for (const ValueId value : values) parts.push_back(graph.add(Op::reshape, {value}, {{"shape", wide}}));
  return graph.add(Op::concat, parts, {{"axis", axis}});
}

std::vector<ValueId> add_inputs(Graph& graph, std::int64_t count, DType dtype, const Dims& dims) {
  std::vector<ValueId> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(graph.add_input("x" + std::to_string(i), make_type(dtype, dims)));
  return values;
}

void expect_same_results(const Graph& graph, const Graph& other) {
  EXPECT_EQ(other.type(other.outputs[0]), graph.type(graph.outputs[0]));
  const std::vector<Tensor> inputs = random_inputs(graph);
  expect_close(interpret(other, inputs).at(0), interpret(graph, inputs).at(0));
  expect_lowers_faithfully(other);
}

TEST(UnstackFolds, FoldsOfAStackAreWorkOnItsParts) {
  for (const Op op : {Op::reduce_sum, Op::reduce_max, Op::reduce_min, Op::reduce_prod})
    for (const std::int64_t axis : {0, 1, 2})
      for (const std::int64_t keepdims : {0, 1})
        for (const DType dtype : {DType::f32, DType::bf16}) {
          Graph graph;
          const ValueId whole = stack(graph, add_inputs(graph, 3, dtype, {4, 20}), {4, 20}, axis);
          graph.outputs = {graph.add(op, {whole}, {{"axes", Dims{axis}}, {"keepdims", keepdims}})};
          const Graph made = unstack_folds(graph, {});
          EXPECT_EQ(std::ranges::count(made.nodes(), Op::concat, &Node::op), 0);
          EXPECT_EQ(std::ranges::count(made.nodes(), op, &Node::op), 0);
          expect_same_results(graph, made);
        }
}

/// The logarithm of a sum of exponentials, as libraries compute it; a factor for each part, and one for all.
TEST(UnstackFolds, WorkBetweenGoesAlong) {
  Graph graph;
  const ValueId whole = stack(graph, add_inputs(graph, 3, DType::f32, {18}), {18}, 0);
  const ValueId factor = graph.add_input("factor", f32({18})), all = graph.add_input("all", f32({}));
  const ValueId scaled = graph.add(Op::mul, {graph.add(Op::mul, {whole, factor}), all});
  const auto fold = [&](Op op, ValueId id) {
    return graph.add(op, {id}, {{"axes", Dims{0}}, {"keepdims", std::int64_t{1}}});
  };
  const ValueId most = fold(Op::reduce_max, scaled);
  const ValueId sum = fold(Op::reduce_sum, graph.add(Op::exp, {graph.add(Op::sub, {scaled, most})}));
  graph.outputs = {graph.add(Op::add, {graph.add(Op::log, {sum}), most})};
  const Graph made = unstack_folds(graph, {});
  EXPECT_EQ(std::ranges::count(made.nodes(), Op::concat, &Node::op), 0);
  EXPECT_EQ(std::ranges::count(made.nodes(), Op::mul, &Node::op), 6) << "each once for both folds";
  expect_same_results(graph, made);
}

TEST(UnstackFolds, OtherFoldsStay) {
  Graph many;
  const ValueId nine = stack(many, add_inputs(many, 9, DType::f32, {24}), {24}, 0);
  many.outputs = {many.add(Op::reduce_sum, {nine}, {{"axes", Dims{0}}})};
  EXPECT_TRUE(same_structure(unstack_folds(many, {}), many));

  Graph across;
  const ValueId rows = stack(across, add_inputs(across, 3, DType::f32, {24}), {24}, 0);
  across.outputs = {across.add(Op::reduce_sum, {rows}, {{"axes", Dims{1}}})};
  EXPECT_TRUE(same_structure(unstack_folds(across, {}), across));

  Graph few;
  const ValueId numbers = stack(few, add_inputs(few, 3, DType::f32, {4}), {4}, 0);
  few.outputs = {few.add(Op::reduce_sum, {numbers}, {{"axes", Dims{0}}})};
  EXPECT_TRUE(same_structure(unstack_folds(few, {}), few));
  LoweringOptions on_device;
  on_device.refuse_template = [](const Kernel&) -> std::string { return "there is none"; };
  EXPECT_FALSE(same_structure(unstack_folds(few, on_device), few));

  Graph beside;  // another operand has the axis, too
  const ValueId three = stack(beside, add_inputs(beside, 3, DType::f32, {24}), {24}, 0);
  const ValueId other = beside.add_input("other", f32({3, 24}));
  beside.outputs = {beside.add(Op::reduce_sum, {beside.add(Op::mul, {three, other})}, {{"axes", Dims{0}}})};
  EXPECT_TRUE(same_structure(unstack_folds(beside, {}), beside));
}

}  // namespace
}  // namespace sylvite::unstack_folds_test
