#include "frontend/graph/graph_builder.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/verifier.h"
#include "sylvite/graph_text.h"

namespace sylvite::graph_builder_test {
namespace {

TEST(GraphBuilderTest, WritesExpressions) {
  Graph graph;
  graph.name = "net";
  GraphBuilder builder(graph);
  const Sym x = builder.input("x", DType::f32, {1, 1, 4, 4});
  const Sym w = builder.constant(Tensor(DType::f32, {2, 1, 3, 3}), "w");
  const Sym sums = builder.add(Op::conv, {x, w},
                               {{"strides", Dims{1, 1}},
                                {"pads", Dims{1, 1, 1, 1}},
                                {"dilations", Dims{1, 1}},
                                {"groups", std::int64_t{1}}});
  const Sym y = apply(Op::relu, sums + 1.0);
  builder.output(reduce(Op::reduce_max, 2.0 * y, {2, 3}), "out");
  verify(graph);
  EXPECT_EQ(graph_text(graph), R"(graph net(%x: f32[1,1,4,4]) {
  %w = constant f32[2,1,3,3] sha256:834a709ba2534ebe
  %v3 = constant f32[] {1.0}
  %v6 = constant f32[] {2.0}
  %v2: f32[1,2,4,4] = conv(%x, %w) {dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}
  %v4: f32[1,2,4,4] = add(%v2, %v3)
  %v5: f32[1,2,4,4] = relu(%v4)
  %v7: f32[1,2,4,4] = mul(%v5, %v6)
  %out: f32[1,2,1,1] = reduce_max(%v7) {axes=[2,3], keepdims=1}
  return %out
}
)");
  const Tensor result = interpret(graph, {Tensor(DType::f32, {1, 1, 4, 4})}).at(0);
  for (std::int64_t i = 0; i < result.size(); ++i) EXPECT_EQ(result.as_double(i), 2.0);
}

TEST(GraphBuilderTest, EvaluatesWhatIsConstant) {
  Graph graph;
  GraphBuilder builder(graph);
  const Sym two = builder.scalar(DType::f32, 1) + builder.scalar(DType::f32, 1);
  ASSERT_TRUE(two.is_constant());
  EXPECT_EQ(two.constant().as_double(0), 2.0);
}

TEST(GraphBuilderTest, RefusesValuesOfTwoBuilders) {
  Graph one;
  Graph two;
  GraphBuilder first(one);
  GraphBuilder second(two);
  const Sym x = first.input("x", DType::f32, {1});
  const Sym y = second.input("y", DType::f32, {1});
  EXPECT_THROW((void)(x + y), UsageError);
}

TEST(GraphBuilderTest, AllTablesTogetherAreLimited) {
  Graph graph;
  GraphBuilder builder(graph);
  EXPECT_THROW(builder.reserve_table({1 << 13, 1 << 13}), UnsupportedError);  // 2^25 elements may be made
  builder.reserve_table({1 << 24});
  builder.reserve_table({1 << 12, 1 << 12});
  EXPECT_THROW(builder.reserve_table({1}), UnsupportedError);
}

TEST(GraphBuilderTest, CopiesOfConstantsStayNodesWhenTheBudgetIsSpent) {
  Graph graph;
  GraphBuilder builder(graph);
  Sym x = builder.constant(Tensor(DType::f32, {1 << 11, 1 << 12}));  // 32 MB
  int folded = 0;
  for (; x.is_constant() && folded < 9; ++folded) x = transpose(x, {1, 0});
  EXPECT_EQ(folded, 3) << "two copies, then a node";
}

TEST(GraphBuilderTest, SmallNodesAreEvaluatedWhateverLargeOnesTook) {
  Graph graph;
  GraphBuilder builder(graph);
  Sym large = builder.constant(Tensor(DType::i32, {1 << 20}));
  int count = 0;
  while (large.is_constant() && ++count < 1000) large = builder.add(Op::abs, {large});
  EXPECT_LT(count, 1000) << "the budget ends";
  EXPECT_TRUE((builder.integers({2, 3}) * builder.integers({5, 7})).is_constant());
  EXPECT_FALSE(builder.add(Op::abs, {builder.constant(Tensor(DType::i32, {1 << 20}))}).is_constant());
}

TEST(GraphBuilderTest, HostStepsEndAtTheirBudget) {
  Graph graph;
  GraphBuilder builder(graph);
  builder.fold_everything(1000, 1'000'000);
  const Sym x = builder.constant(Tensor(DType::f32, {10}));
  EXPECT_TRUE((x + 1.0).is_constant());
  EXPECT_THROW((void)broadcast_to(x, {30, 10}), UnsupportedError) << "1200 bytes";
  const auto square = [&] { return matmul(reshape(x, {10, 1}), reshape(x, {1, 10})); };  // 400 bytes
  EXPECT_TRUE(square().is_constant());
  EXPECT_TRUE(square().is_constant());
  EXPECT_THROW((void)square(), UnsupportedError);
  EXPECT_THROW(builder.charge(1, 1'000'000), UnsupportedError);
}

TEST(GraphBuilderTest, HostStepsAreDoneByWhatIsGiven) {
  Graph graph;
  GraphBuilder builder(graph);
  const Sym x = builder.constant(Tensor::of<float>(DType::f32, {2}, {1, 2}));
  builder.fold_everything(1000, 1'000'000,
                          [](Op, InputTensors, const Attributes&, ResultTypes) -> std::vector<Tensor> {
                            return {Tensor::of<float>(DType::f32, {2}, {5, 7})};
                          });
  EXPECT_EQ((x + x).constant().as_double(1), 7);
}

/// As the interpreter does, whatever the size of an element.
TEST(GraphBuilderTest, TransposesConstants) {
  for (const DType dtype : {DType::u8, DType::bf16, DType::f32, DType::i64}) {
    for (const std::vector<std::int64_t>& perm :
         {std::vector<std::int64_t>{2, 1, 0}, {1, 2, 0}, {0, 2, 1}, {1, 0, 2}}) {
      Tensor tensor(dtype, {5, 33, 18});
      for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_int64(i, i % 101);
      Graph graph;
      GraphBuilder builder(graph);
      const Sym constant = transpose(builder.constant(tensor, "w"), perm);
      ASSERT_TRUE(constant.is_constant());
      const Sym x = builder.input("x", dtype, {5, 33, 18});
      builder.output(builder.add(Op::transpose, {x}, {{"perm", perm}}), "out");
      const Tensor expected = interpret(graph, {tensor}).at(0);
      EXPECT_EQ(constant.constant().dims(), expected.dims());
      EXPECT_EQ(constant.constant().to_int64s(), expected.to_int64s());
    }
  }
}

}  // namespace
}  // namespace sylvite::graph_builder_test
