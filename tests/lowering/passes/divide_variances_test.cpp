// Variances of what is large, as those of parts.

#include <gtest/gtest.h>

#include "frontend/graph/interpreter.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::divide_variances_test {
namespace {

/// A mean and a variance of `dims` along `axes`.
Graph variance_of(const Dims& dims, const Dims& axes, std::int64_t keepdims = 1) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32(dims));
  double count = 1;
  for (const std::int64_t axis : axes) count *= static_cast<double>(dims[static_cast<std::size_t>(axis)]);
  const ValueId each = scalar(graph, 1 / count);
  const auto sum = [&](ValueId id, std::int64_t keeps) {
    return graph.add(Op::reduce_sum, {id}, {{"axes", axes}, {"keepdims", keeps}});
  };
  const ValueId mean = graph.add(Op::mul, {sum(x, 1), each});
  const ValueId apart = graph.add(Op::sub, {x, mean});
  graph.outputs = {graph.add(Op::mul, {sum(graph.add(Op::mul, {apart, apart}), keepdims), each}), mean};
  return graph;
}

/// Far from zero, where sums of squares would lose what is asked for.
Tensor numbers(const Dims& dims) {
  Tensor x(DType::f32, dims);
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.set_double(i, 300 + static_cast<double>(i % 7) + static_cast<double>(i * 8 / x.size()));
  return x;
}

void expect_divided(const Graph& whole, const Dims& parts, const Dims& left) {
  const Graph divided = divide_variances(whole);
  EXPECT_EQ(folds_in(divided), (std::vector<Dims>{parts, left, parts, left, left}));
  const std::vector<Tensor> inputs = {numbers(whole.type(whole.inputs[0]).dims())};
  const std::vector<Tensor> wanted = interpret(whole, inputs), got = interpret(divided, inputs);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(wanted[i].type(), got[i].type());
    for (std::int64_t e = 0; e < wanted[i].size(); ++e)
      ASSERT_NEAR(got[i].as_double(e) / wanted[i].as_double(e), 1, 1e-3) << i;
  }
}

TEST(DivideVariances, OfRowsAreThoseOfPartsOfRows) {
  expect_divided(variance_of({2, 1 << 20}, {1}, 0), {2, 256, 4096}, {2, 256});
  expect_divided(variance_of({2048, 1024}, {0, 1}), {512, 4096}, {512});
}

TEST(DivideVariances, OfColumnsAreThoseOfPartsOfTheirRows) {
  expect_divided(variance_of({65536, 32}, {0}), {512, 128, 32}, {512, 32});
  expect_divided(variance_of({2, 33000, 32}, {1}, 0), {2, 132, 250, 32}, {2, 132, 32});
}

TEST(DivideVariances, OfChannelsAreThoseOfImages) {
  expect_divided(variance_of({32, 64, 32, 32}, {0, 2, 3}), {32, 64, 32, 32}, {32, 64});
}

/// As of a mean that others need without the folded dim.
TEST(DivideVariances, AllSumsOfWhatIsDividedAreOne) {
  Graph graph = variance_of({65536, 32}, {0});
  graph.outputs.push_back(
      graph.add(Op::reduce_sum, {graph.inputs[0]}, {{"axes", Dims{0}}, {"keepdims", std::int64_t{0}}}));
  expect_divided(graph, {512, 128, 32}, {512, 32});
}

TEST(DivideVariances, WhatIsSmallOrHasNoEqualPartsStays) {
  const auto stays = [](const Dims& dims, const Dims& axes) {
    return folds_in(divide_variances(variance_of(dims, axes))) == std::vector<Dims>{dims, dims};
  };
  EXPECT_TRUE(stays({1000, 100}, {0}));
  EXPECT_TRUE(stays({2, 1299709}, {1}));
  EXPECT_TRUE(stays({4096, 4096}, {1}));  // a block holds a row
  EXPECT_TRUE(stays({4, 8, 80000}, {0, 2}));
}

/// A mean of something else.
TEST(DivideVariances, OtherSumsOfSquaresStay) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({65536, 32})), y = graph.add_input("y", f32({65536, 32}));
  const auto sum = [&](ValueId id) {
    return graph.add(Op::reduce_sum, {id}, {{"axes", Dims{0}}, {"keepdims", std::int64_t{1}}});
  };
  const ValueId apart = graph.add(Op::sub, {x, graph.add(Op::mul, {sum(y), scalar(graph, 1. / 65536)})});
  const ValueId half = graph.add(Op::sub, {x, graph.add(Op::mul, {sum(x), scalar(graph, 0.5 / 65536)})});
  graph.outputs = {sum(graph.add(Op::mul, {apart, apart})), sum(graph.add(Op::mul, {half, half}))};
  EXPECT_EQ(folds_in(divide_variances(graph)).size(), folds_in(graph).size());
  EXPECT_EQ(folds_in(divide_variances(graph)).front(), (Dims{65536, 32}));
}

}  // namespace
}  // namespace sylvite::divide_variances_test
