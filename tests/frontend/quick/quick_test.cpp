#include "frontend/quick/quick.h"

#include <cmath>

#include "frontend/graph/evaluation_work.h"
#include "tests/frontend/ops/run_op.h"
#include "tests/frontend/quick/as_reference.h"

namespace sylvite::quick_test {
namespace {

Attributes window(const Ints& strides, const Ints& pads, const Ints& dilations, std::int64_t groups = 1) {
  return {{"strides", strides}, {"pads", pads}, {"dilations", dilations}, {"groups", groups}};
}

TEST(Quick, UnaryOperationsAgreeWithTheReference) {
  for (const Op op :
       {Op::neg, Op::abs, Op::floor, Op::ceil, Op::round, Op::exp, Op::sin, Op::cos, Op::tanh, Op::erf,
        Op::sigmoid, Op::relu, Op::gelu, Op::silu, Op::hard_sigmoid, Op::hard_swish, Op::softplus, Op::tan}) {
    SCOPED_TRACE(op_info(op).name);
    expect_as_reference(op, {waves({40, 1001})});
    expect_as_reference(op, {reals({7}, {0, -0.0, infinity, -infinity, not_a_number, 1e-20, 700})});
    expect_as_reference(op, {waves({5, 3}, DType::bf16)}, {}, 1e-2);
  }
  for (const Op op : {Op::sqrt, Op::rsqrt, Op::reciprocal, Op::log})
    expect_as_reference(op, {positive({3, 50})});
  expect_as_reference(Op::gelu, {waves({300})}, {{"approximate", std::string("tanh")}});
}

Tensor both_signs(const Dims& dims, std::int64_t largest) {
  Tensor tensor(DType::i32, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    tensor.set_int64(i, i % 7 == 0 ? -largest : i * 2654435761 % (2 * largest + 1) - largest);
  return tensor;
}

TEST(Quick, ProductsOfIntegersAreExact) {
  for (const std::int64_t largest : {0, 1, 255, 3000, 1 << 20}) {
    SCOPED_TRACE(largest);
    expect_as_reference(Op::matmul, {both_signs({5, 1000}, largest), both_signs({1000, 37}, largest)}, {}, 0);
    expect_as_reference(Op::matmul, {both_signs({2, 3, 70}, largest), both_signs({2, 70, 9}, largest)}, {},
                        0);
    expect_as_reference(Op::matmul, {both_signs({2, 1, 3, 20}, largest), both_signs({3, 20, 5}, 2)}, {}, 0);
    expect_as_reference(Op::matmul, {both_signs({2, 9, 600}, largest), both_signs({600, 2}, 127)}, {}, 0);
  }
  using Pair = std::pair<DType, DType>;
  for (const auto& [left, right] : {Pair{DType::u8, DType::i8}, Pair{DType::i16, DType::i8},
                                    Pair{DType::i16, DType::i16}, Pair{DType::i32, DType::i32}}) {
    SCOPED_TRACE(dtype_name(right));
    const auto filled = [](DType dtype, const Dims& dims) {
      Tensor tensor(dtype, dims);
      for (std::int64_t i = 0; i < tensor.size(); ++i)
        tensor.set_int64(i, i * 37 % (dtype == DType::i32 ? 1 << 20 : 128));
      return tensor;
    };
    expect_as_reference(Op::matmul, {filled(left, {2, 1, 150}), filled(right, {150, 1100})}, {}, 0);
  }
  Tensor ones(DType::i32, {70, 300});
  Tensor most(DType::i32, {300, 3});
  for (std::int64_t i = 0; i < ones.size(); ++i) ones.set_int64(i, 255);
  for (std::int64_t i = 0; i < most.size(); ++i) most.set_int64(i, 255);
  expect_as_reference(Op::matmul, {ones, most}, {}, 0);
}

TEST(Quick, ConvolutionsOfIntegersAreExact) {
  const Attributes grouped = window({2, 1}, {1, 0, 1, 2}, {1, 2}, 2);
  const Attributes depthwise = window({1, 2}, {1, 1, 1, 1}, {1, 1}, 5);
  const Attributes plain = window({1, 1}, {0, 0, 0, 0}, {1, 1});
  for (const std::int64_t largest : {0, 1, 255, 3000, 1 << 20}) {
    SCOPED_TRACE(largest);
    expect_as_reference(Op::conv, {both_signs({2, 6, 9, 11}, largest), both_signs({10, 3, 3, 3}, 127)},
                        grouped, 0);
    expect_as_reference(Op::conv, {both_signs({1, 90, 6, 7}, largest), both_signs({33, 90, 3, 3}, largest)},
                        plain, 0);
    expect_as_reference(Op::conv, {both_signs({1, 700, 4, 5}, largest), both_signs({3, 700, 1, 1}, 127)},
                        plain, 0);
    expect_as_reference(Op::conv, {both_signs({2, 5, 12, 7}, largest), both_signs({10, 1, 3, 3}, largest)},
                        depthwise, 0);
  }
  Tensor image(DType::u8, {1, 200, 5, 5});
  Tensor filters(DType::i8, {4, 200, 3, 3});
  for (std::int64_t i = 0; i < image.size(); ++i) image.set_int64(i, 255);
  for (std::int64_t i = 0; i < filters.size(); ++i) filters.set_int64(i, i % 3 == 0 ? 127 : -128);
  expect_as_reference(Op::conv, {image, filters}, plain, 0);
}

/// A network whose convolutions are of integers is answered as soon as one of floats.
TEST(Quick, EstimatesOfIntegersAreThoseOfFloats) {
  const auto seconds = [](DType dtype) {
    Graph graph;
    const ValueId image = graph.add_input("x", make_type(dtype, {1, 64, 56, 56}));
    const ValueId filters = graph.add_input("w", make_type(dtype, {64, 64, 3, 3}));
    graph.outputs = {graph.add(Op::conv, {image, filters}, window({1, 1}, {1, 1, 1, 1}, {1, 1}))};
    return quick_seconds(graph);
  };
  EXPECT_EQ(seconds(DType::i32), seconds(DType::f32));
}

/// Relative to each element: where functions are near 0 or tiny.
TEST(Quick, FunctionsAreAccurateEverywhere) {
  Tensor x(DType::f32, {4001});
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, (static_cast<double>(i) - 2000) / 50);
  for (const Op op : {Op::exp, Op::tanh, Op::sigmoid, Op::silu, Op::erf}) {
    SCOPED_TRACE(op_info(op).name);
    const Tensor* inputs[] = {&x};
    const TensorType types[] = {x.type()};
    const Tensor got = evaluate_quickly(op, inputs, {}, types, 1).at(0);
    const Tensor wanted = evaluate_node(op, inputs, {}, types).at(0);
    for (std::int64_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(got.as_double(i), wanted.as_double(i), 1e-6 * std::fabs(wanted.as_double(i)) + 1e-37)
          << "at " << x.as_double(i);
  }
}

TEST(Quick, BinaryOperationsBroadcast) {
  const std::vector<std::pair<Dims, Dims>> shapes = {{{2, 3, 4, 5}, {2, 3, 4, 5}},
                                                     {{2, 3, 4, 5}, {3, 1, 1}},
                                                     {{1, 7}, {6, 1}},
                                                     {{}, {3, 2}},
                                                     {{40, 1, 500}, {1, 3, 1}},
                                                     {{2, 1, 4, 1}, {1, 3, 1, 5}},
                                                     {{1, 1}, {1}},
                                                     {{70000}, {1}},
                                                     {{5, 1, 3}, {5, 1, 3}},
                                                     {{2, 3, 4}, {2, 1, 4}},
                                                     {{3, 1, 1, 4}, {2, 2, 1}}};
  for (const auto& [a, b] : shapes)
    for (const Op op : {Op::add, Op::sub, Op::mul, Op::div, Op::minimum, Op::maximum, Op::mod})
      expect_as_reference(op, {waves(a), positive(b)});
  expect_as_reference(Op::pow, {positive({4, 9}), waves({9}, DType::f32, 1)});
  expect_as_reference(Op::pow, {waves({4, 9}), reals({}, {2})});
  expect_as_reference(Op::maximum, {reals({3}, {not_a_number, 1, 2}), reals({3}, {1, not_a_number, 1})});
  expect_as_reference(Op::minimum, {reals({3}, {not_a_number, 1, 2}), reals({3}, {1, not_a_number, 1})});
  expect_as_reference(Op::add, {counting({3, 4}, DType::i64), counting({4}, DType::i64)});
}

TEST(Quick, WhereChooses) {
  const Tensor condition = ints({2, 1, 3}, {1, 0, 1, 0, 0, 1}, DType::boolean);
  expect_as_reference(Op::where, {condition, waves({2, 4, 3}), reals({}, {7})});
  expect_as_reference(Op::where, {condition, waves({1, 4, 1}), waves({2, 1, 3}, DType::f32, 1)});
}

TEST(Quick, FoldsNormsAndSoftmaxAgreeWithTheReference) {
  for (const Op op : {Op::reduce_sum, Op::reduce_max, Op::reduce_min, Op::reduce_prod})
    for (const Ints& axes : {Ints{2, 3}, Ints{1}, Ints{0, 1, 2, 3}, Ints{3}, Ints{0}, Ints{0, 2}})
      expect_as_reference(op, {op == Op::reduce_sum ? positive({3, 5, 6, 7}) : waves({3, 5, 6, 7})},
                          {{"axes", axes}, {"keepdims", std::int64_t{0}}});
  expect_as_reference(Op::reduce_sum, {positive({2, 70001})}, {{"axes", Ints{1}}});
  expect_as_reference(Op::reduce_max, {reals({1, 3}, {1, not_a_number, 2})}, {{"axes", Ints{1}}});
  for (const std::int64_t axis : {0, 1, 2})
    expect_as_reference(Op::softmax, {waves({3, 5, 37})}, {{"axis", axis}});
  for (const std::int64_t axis : {1, 2}) {
    const Dims dims = axis == 1 ? Dims{5, 37} : Dims{37};
    expect_as_reference(Op::layer_norm, {waves({3, 5, 37}), waves(dims), waves(dims, DType::f32, 2)},
                        {{"axis", axis}});
    expect_as_reference(Op::layer_norm, {waves({3, 5, 37})}, {{"axis", axis}});
    expect_as_reference(Op::rms_norm, {waves({3, 5, 37}), waves(dims)}, {{"axis", axis}});
  }
  expect_as_reference(Op::batch_norm,
                      {waves({2, 6, 5, 3}), waves({6}), waves({6}), waves({6}), positive({6})});
}

TEST(Quick, MatmulAgreesWithTheReference) {
  const std::vector<std::pair<Dims, Dims>> shapes = {
      {{1, 700}, {700, 1100}},   {{3, 6}, {6, 9}},        {{37, 300}, {300, 65}}, {{2, 3, 20, 8}, {8, 33}},
      {{4, 1, 9, 8}, {3, 8, 5}}, {{2, 1, 8}, {2, 8, 40}}, {{150, 70}, {70, 1}},   {{1, 9, 8}, {4, 8, 50}}};
  for (const auto& [a, b] : shapes)
    expect_as_reference(Op::matmul, {waves(a), waves(b, DType::f32, 1)}, {}, 1e-5);
  expect_as_reference(Op::matmul, {waves({20, 30}, DType::f16), waves({30, 40}, DType::f16)}, {}, 1e-2);
  expect_as_reference(Op::matmul, {counting({4, 5}, DType::i32), counting({5, 6}, DType::i32)});
}

TEST(Quick, ConvAgreesWithTheReference) {
  expect_as_reference(Op::conv, {waves({2, 3, 9, 11}), waves({40, 3, 3, 3}), waves({40})},
                      window({2, 1}, {1, 0, 1, 2}, {1, 2}));
  expect_as_reference(Op::conv, {waves({1, 16, 20, 20}), waves({33, 16, 1, 1})},
                      window({1, 1}, {0, 0, 0, 0}, {1, 1}));
  expect_as_reference(Op::conv, {waves({1, 6, 9, 9}), waves({12, 2, 5, 3}), waves({12})},
                      window({2, 3}, {2, 1, 2, 1}, {1, 1}, 3));
  expect_as_reference(Op::conv, {waves({2, 5, 12, 7}), waves({10, 1, 3, 3}), waves({10})},
                      window({2, 1}, {1, 1, 1, 1}, {1, 1}, 5));
  expect_as_reference(Op::conv, {waves({1, 4, 200}), waves({7, 4, 9})}, window({1}, {4, 4}, {3}));
  expect_as_reference(Op::conv, {waves({1, 2, 5, 6, 7}), waves({5, 2, 2, 3, 2})},
                      window({1, 2, 1}, {1, 0, 1, 0, 1, 1}, {1, 1, 2}));
  expect_as_reference(Op::conv, {waves({1, 2, 3, 3}), waves({4, 2, 3, 3})},
                      window({1, 1}, {7, 7, 7, 7}, {1, 1}));
}

// Their packed columns are multiplied slab by slab; a slab ends inside of a channel's taps.
TEST(Quick, DeepProductsAgreeWithTheReference) {
  expect_as_reference(Op::matmul, {waves({3, 2500}), waves({2500, 300})}, {}, 1e-5);
  expect_as_reference(Op::matmul, {waves({20, 2500}), waves({2500, 35})}, {}, 1e-5);
  expect_as_reference(Op::conv, {waves({1, 301, 5, 6}), waves({16, 301, 3, 3}), waves({16})},
                      window({1, 1}, {1, 1, 1, 1}, {1, 1}), 1e-5);
  expect_as_reference(Op::conv, {waves({1, 31, 20, 34}), waves({5, 31, 3, 3})},
                      window({1, 1}, {2, 2, 2, 2}, {2, 2}), 1e-5);
}

TEST(Quick, PoolingAgreesWithTheReference) {
  for (const Op op : {Op::max_pool, Op::avg_pool})
    for (const std::int64_t counts : {0, 1}) {
      const auto pooling = [&](Attributes attributes, const Ints& kernel) {
        attributes.set("kernel", kernel);
        if (op == Op::avg_pool) attributes.set("count_include_pad", counts);
        return attributes;
      };
      const auto spatial = [](const Ints& strides, const Ints& pads, const Ints& dilations) {
        return Attributes{{"strides", strides}, {"pads", pads}, {"dilations", dilations}};
      };
      expect_as_reference(op, {waves({2, 5, 9, 10})}, pooling(spatial({2, 2}, {1, 1, 1, 1}, {1, 1}), {3, 3}));
      expect_as_reference(op, {waves({1, 3, 8, 8})}, pooling(spatial({1, 3}, {0, 2, 3, 0}, {2, 1}), {2, 4}));
      expect_as_reference(op, {waves({1, 3, 31})}, pooling(spatial({2}, {1, 4}, {1}), {5}));
      expect_as_reference(op, {waves({1, 2, 4, 5, 6})},
                          pooling(spatial({1, 2, 2}, {0, 0, 0, 1, 1, 1}, {1, 1, 1}), {2, 2, 2}));
    }
}

TEST(Quick, AttentionAgreesWithTheReference) {
  const Tensor q = waves({2, 3, 7, 16}), k = waves({2, 3, 9, 16}, DType::f32, 1), v = waves({2, 3, 9, 10});
  expect_as_reference(Op::attention, {q, k, v});
  expect_as_reference(Op::attention, {q, k, v},
                      {{"causal", std::int64_t{1}}, {"softcap", 2.0}, {"scale", 0.7}});
  expect_as_reference(Op::attention, {q, k, v, waves({7, 9})});
  Tensor keeps(DType::boolean, {1, 1, 7, 9});
  for (std::int64_t i = 0; i < keeps.size(); ++i) keeps.set_int64(i, i % 3 == 0 || i > 20 ? 1 : 0);
  expect_as_reference(Op::attention, {q, k, v, keeps});
  expect_as_reference(Op::attention, {q, waves({1, 9, 16}), waves({1, 9, 10})});
  expect_as_reference(Op::attention, {waves({1, 1, 3, 8}), waves({1, 1, 2100, 8}), waves({1, 1, 2100, 8})});
}

TEST(Quick, ResultsWithoutElementsAreMade) {
  expect_as_reference(Op::conv, {waves({0, 3, 9, 9}), waves({4, 3, 3, 3})},
                      window({1, 1}, {0, 0, 0, 0}, {1, 1}));
  expect_as_reference(Op::matmul, {waves({3, 0}), waves({0, 4})});
  expect_as_reference(Op::add, {waves({0, 4}), waves({4})});
  expect_as_reference(Op::reduce_sum, {waves({4, 0})}, {{"axes", Ints{1}}});
}

TEST(Quick, EstimatesGrowWithTheWork) {
  Graph graph;
  const ValueId a = graph.add_input("a", make_type(DType::f32, {512, 512}));
  graph.outputs = {graph.add(Op::matmul, {a, a})};
  const double once = quick_seconds(graph);
  graph.outputs = {graph.add(Op::matmul, {graph.outputs[0], a})};
  EXPECT_GT(once, 1e-4);
  EXPECT_NEAR(quick_seconds(graph), 2 * once, 1e-9);
  // What only the reference has takes longer.
  graph.add(Op::cumsum, {a}, {{"axis", std::int64_t{0}}});
  EXPECT_GT(quick_seconds(graph), 2 * once);
}

}  // namespace
}  // namespace sylvite::quick_test
