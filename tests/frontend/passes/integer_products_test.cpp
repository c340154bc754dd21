// Products of dequantised values: the integers are multiplied, in every combination of their types.

#include <algorithm>
#include <random>

#include "frontend/graph/graph_builder.h"
#include "frontend/graph/interpreter.h"
#include "frontend/passes/pass_list.h"
#include "tests/frontend/ops/run_op.h"

namespace sylvite::integer_products_test {
namespace {

Tensor random_steps(DType dtype, const Dims& dims, unsigned seed) {
  std::mt19937 generator(seed);
  Tensor tensor(dtype, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    tensor.set_int64(i, static_cast<std::int64_t>(generator() % 256) - (dtype == DType::i8 ? 128 : 0));
  return tensor;
}

Tensor random_scales(const Dims& dims, unsigned seed) {
  std::mt19937 generator(seed);
  Tensor tensor(DType::f32, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    tensor.set_double(i, 0.01 * (1 + static_cast<double>(generator() % 100)));
  return tensor;
}

/// (x - zero) scale; without a zero point where it is empty.
Sym real(Sym x, const Tensor& zero, const Tensor& scale) {
  GraphBuilder& builder = x.builder();
  Sym y = cast(x, DType::f32);
  if (zero.size() > 0) y = y - cast(builder.constant(zero), DType::f32);
  return y * builder.constant(scale);
}

/// The element type of what the only product reads on each side.
std::pair<DType, DType> operands(const Graph& graph, Op op) {
  const auto product = std::ranges::find_if(graph.nodes(), [&](const Node& node) { return node.op == op; });
  return {graph.type(product->inputs[0]).dtype, graph.type(product->inputs[1]).dtype};
}

void expect_equal(const Graph& before, const Graph& after, const std::vector<Tensor>& inputs) {
  verify(after);
  const Tensor expected = interpret(before, inputs)[0], got = interpret(after, inputs)[0];
  ASSERT_EQ(got.dims(), expected.dims());
  ASSERT_EQ(got.dtype(), expected.dtype());
  double largest = 0;
  for (std::int64_t i = 0; i < expected.size(); ++i)
    largest = std::max(largest, std::abs(expected.as_double(i)));
  for (std::int64_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(got.as_double(i), expected.as_double(i), 1e-6 * largest) << i;
}

struct Operands {
  DType a, b;
  bool has_zeros;
  std::int64_t depth;
  DType right;  ///< of the product of integers, whose left one is u8 where fours of bytes are multiplied
};

TEST(IntegerProducts, MatmulsMultiplyBytesWhereTheyMay) {
  for (const Operands& c : {Operands{DType::u8, DType::i8, false, 8, DType::i8},
                            {DType::u8, DType::i8, true, 8, DType::i16},
                            {DType::i8, DType::i8, false, 12, DType::i8},
                            {DType::i8, DType::u8, true, 12, DType::i16},
                            {DType::u8, DType::u8, true, 8, DType::i16},
                            {DType::u8, DType::i8, false, 6, DType::i8}}) {
    Graph graph;
    GraphBuilder builder(graph);
    const Sym x = builder.input("x", c.a, {2, 5, c.depth});
    const Sym w = builder.constant(random_steps(c.b, {c.depth, 7}, 1));
    const Tensor a_zero = c.has_zeros ? random_steps(c.a, {}, 2) : Tensor(c.a, {0});
    const Tensor b_zero = c.has_zeros ? random_steps(c.b, {7}, 3) : Tensor(c.b, {0});
    builder.output(matmul(real(x, a_zero, random_scales({}, 4)), real(w, b_zero, random_scales({7}, 5))),
                   "y");
    const Graph after = integer_products(graph);
    const DType left = c.right == DType::i8 && c.depth % 4 == 0 ? DType::u8 : DType::i16;
    EXPECT_EQ(operands(after, Op::matmul).first, left) << dtype_name(c.a) << " " << dtype_name(c.b);
    EXPECT_EQ(operands(after, Op::matmul).second, c.right) << dtype_name(c.a) << " " << dtype_name(c.b);
    expect_equal(graph, after, {random_steps(c.a, {2, 5, c.depth}, 6)});
  }
}

/// A zero point in the middle of u8 leaves i8, and the left one comes off the sums.
TEST(IntegerProducts, ZeroPointsComeOffTheSums) {
  for (const DType a : {DType::u8, DType::i8}) {
    Graph graph;
    GraphBuilder builder(graph);
    const Sym x = builder.input("x", a, {5, 8});
    const Sym zero = builder.input("zero", a, {});
    const Sym w = builder.constant(random_steps(DType::u8, {8, 7}, 1));
    const Sym left = (cast(x, DType::f32) - cast(zero, DType::f32)) * 0.5;
    Tensor middle(DType::u8, {});
    middle.set_int64(0, 128);
    builder.output(matmul(left, real(w, middle, random_scales({}, 5))), "y");
    const Graph after = integer_products(graph);
    EXPECT_EQ(operands(after, Op::matmul), std::pair(DType::u8, DType::i8));
    expect_equal(graph, after, {random_steps(a, {5, 8}, 6), random_steps(a, {}, 7)});
  }
}

TEST(IntegerProducts, TransposedWeightsHaveTheirParametersTransposed) {
  Graph graph;
  GraphBuilder builder(graph);
  const Sym x = builder.input("x", DType::u8, {5, 8});
  const Sym w = builder.constant(random_steps(DType::i8, {7, 8}, 1));
  const Sym right = swap_axes(real(w, Tensor(DType::i8, {0}), random_scales({7, 1}, 5)), 0, 1);
  builder.output(matmul(real(x, random_steps(DType::u8, {}, 2), random_scales({5, 1}, 3)), right), "y");
  const Graph after = integer_products(graph);
  EXPECT_EQ(operands(after, Op::matmul).first, DType::u8);
  expect_equal(graph, after, {random_steps(DType::u8, {5, 8}, 6)});
}

/// As recurrences hold the weights of both directions.
TEST(IntegerProducts, WeightsMayBePartsOfOthers) {
  for (const Dims& scale : {Dims{2, 1, 7}, Dims{1, 1, 1}}) {
    Graph graph;
    GraphBuilder builder(graph);
    const Sym x = builder.input("x", DType::u8, {5, 8});
    const Sym w = builder.constant(random_steps(DType::u8, {2, 8, 7}, 1));
    const Sym both = real(w, random_steps(DType::u8, {2, 1, 7}, 4), random_scales(scale, 5));
    const Sym right = reshape(slice(both, 0, 1, 2), {8, 7});
    builder.output(matmul(real(x, random_steps(DType::u8, {}, 2), random_scales({}, 3)), right), "y");
    const Graph after = integer_products(graph);
    EXPECT_EQ(operands(after, Op::matmul), std::pair(DType::i16, DType::i16));
    expect_equal(graph, after, {random_steps(DType::u8, {5, 8}, 6)});
  }
}

TEST(IntegerProducts, ProductsOfActivationsMultiplyPairs) {
  Graph graph;
  GraphBuilder builder(graph);
  const Sym x = builder.input("x", DType::u8, {2, 5, 8}), y = builder.input("y", DType::u8, {2, 8, 3});
  const Tensor scale = random_scales({}, 5);
  builder.output(
      matmul(real(x, random_steps(DType::u8, {}, 2), scale), real(y, random_steps(DType::u8, {}, 3), scale)),
      "z");
  const Graph after = integer_products(graph);
  EXPECT_EQ(operands(after, Op::matmul), std::pair(DType::i16, DType::i16));
  expect_equal(graph, after, {random_steps(DType::u8, {2, 5, 8}, 6), random_steps(DType::u8, {2, 8, 3}, 7)});
}

/// As exporters write that leave quantised weights in f32, perhaps transposed.
TEST(IntegerProducts, WeightsMayBeRoundedInTheModel) {
  for (const bool is_turned : {false, true}) {
    Graph graph;
    GraphBuilder builder(graph);
    const Sym x = builder.input("x", DType::u8, {5, 8});
    Sym w = builder.constant(random_scales(is_turned ? Dims{7, 8} : Dims{8, 7}, 1));
    if (is_turned) w = swap_axes(w, 0, 1);
    const Sym scale = builder.constant(Tensor::scalar_f32(0.01F));
    const Sym steps = builder.add(Op::round, {w, scale}, {{"to", "i8"}});
    const Sym right = cast(steps, DType::f32) * scale;
    builder.output(matmul(real(x, random_steps(DType::u8, {}, 2), random_scales({}, 3)), right), "y");
    EXPECT_EQ(operands(integer_products(graph), Op::matmul).first, DType::u8);
    const Graph after = integer_products(fold_steps(graph));
    EXPECT_EQ(operands(after, Op::matmul), std::pair(DType::u8, DType::i8));
    EXPECT_TRUE(std::ranges::none_of(after.nodes(), [](const Node& node) { return node.op == Op::round; }));
    expect_equal(graph, after, {random_steps(DType::u8, {5, 8}, 6)});
  }
}

TEST(IntegerProducts, RoundedInputsAreNotConstant) {
  Graph graph;
  GraphBuilder builder(graph);
  const Sym x = builder.input("x", DType::f32, {5, 8});
  const Sym scale = builder.constant(Tensor::scalar_f32(0.01F));
  const Sym constant = builder.add(Op::exp, {builder.constant(random_scales({8}, 1))});
  builder.output(builder.add(Op::round, {x + constant, scale}, {{"to", "i8"}}), "y");
  EXPECT_EQ(fold_steps(graph).nodes().size(), graph.nodes().size());
}

/// A scale along the depth, an odd depth, and sums that 32 bits may not hold.
TEST(IntegerProducts, LeavesOthersAlone) {
  const auto product = [](std::int64_t depth, const Dims& scale) {
    Graph graph;
    GraphBuilder builder(graph);
    const Sym x = builder.input("x", DType::u8, {5, depth});
    const Sym w = builder.constant(random_steps(DType::i8, {depth, 2}, 1));
    const Tensor none(DType::u8, {0});
    builder.output(matmul(real(x, none, random_scales(scale, 2)), real(w, none, random_scales({}, 3))), "y");
    return operands(integer_products(graph), Op::matmul).first;
  };
  EXPECT_EQ(product(8, {}), DType::u8);
  EXPECT_EQ(product(8, {8}), DType::f32);
  EXPECT_EQ(product(7, {}), DType::f32);
  EXPECT_EQ(product(1 << 16, {}), DType::f32);
}

Sym convolved(Sym x, Sym w, std::vector<Sym> bias = {}) {
  std::vector<Sym> inputs = {x, w};
  inputs.insert(inputs.end(), bias.begin(), bias.end());
  return conv(inputs, {{"strides", Dims{1, 2}},
                       {"pads", Dims{1, 0, 1, 2}},
                       {"dilations", Dims{1, 1}},
                       {"groups", std::int64_t{1}}});
}

TEST(IntegerProducts, ConvolutionsMultiplyBytes) {
  for (const DType type : {DType::u8, DType::i8}) {
    for (const bool is_plain : {false, true}) {
      for (const std::int64_t channels : {3, 8}) {
        Graph graph;
        GraphBuilder builder(graph);
        const Sym x = builder.input("x", type, {2, channels, 6, 5});
        const Sym w = builder.constant(random_steps(DType::i8, {4, channels, 3, 3}, 1));
        const Tensor none(type, {0});
        const Sym left = real(x, is_plain ? none : random_steps(type, {}, 2), random_scales({}, 3));
        const Sym right = real(w, none, random_scales({4, 1, 1, 1}, 4));
        const Sym bias = builder.constant(random_scales({4}, 5));
        builder.output(is_plain ? convolved(left, right, {bias}) : convolved(left, right), "y");
        const Graph after = integer_products(graph);
        EXPECT_EQ(operands(after, Op::conv), std::pair(DType::u8, DType::i8));
        expect_equal(graph, after, {random_steps(type, {2, channels, 6, 5}, 6)});
      }
    }
  }
}

TEST(IntegerProducts, SumsOfIntegersAreTheSame) {
  Graph graph;
  GraphBuilder builder(graph);
  const Sym x = builder.input("x", DType::u8, {5, 8}), zero = builder.input("zero", DType::u8, {});
  const Sym w = builder.constant(random_steps(DType::i8, {8, 7}, 1));
  const Sym left = cast(x, DType::i16) - cast(zero, DType::i16);
  builder.output(builder.add(Op::matmul, {left, w}), "y");
  const Graph after = integer_products(graph);
  EXPECT_EQ(operands(after, Op::matmul), std::pair(DType::u8, DType::i8));
  const std::vector<Tensor> inputs = {random_steps(DType::u8, {5, 8}, 2), random_steps(DType::u8, {}, 3)};
  EXPECT_EQ(values(interpret(after, inputs)[0]), values(interpret(graph, inputs)[0]));
}

}  // namespace
}  // namespace sylvite::integer_products_test
