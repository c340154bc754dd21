// Few folds of long rows, and places of greatest elements, as many folds of parts.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/graph/interpreter.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::divide_folds_test {
namespace {

Graph fold_of(Op op, const Dims& dims, const Dims& axes, std::int64_t keepdims, DType dtype = DType::f32) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(dtype, dims));
  graph.outputs = {graph.add(op, {x}, {{"axes", axes}, {"keepdims", keepdims}})};
  return graph;
}

Tensor whole_numbers(const TensorType& type) {
  Tensor x(type.dtype, type.dims());
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i * 7 % 11) - 5);
  return x;
}

void expect_same(const Graph& graph, const Graph& made, const std::vector<Tensor>& inputs) {
  const Tensor wanted = interpret(graph, inputs).at(0), got = interpret(made, inputs).at(0);
  ASSERT_EQ(wanted.type(), got.type());
  for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(wanted.as_double(i), got.as_double(i)) << i;
}

void expect_divided(const Graph& whole, const std::vector<Dims>& folds) {
  const Graph divided = divide_folds(whole);
  EXPECT_EQ(folds_in(divided), folds);
  expect_same(whole, divided, {whole_numbers(whole.type(whole.inputs[0]))});
}

TEST(DivideFolds, PartsAreDimsWhereThereAreSome) {
  expect_divided(fold_of(Op::reduce_sum, {256, 1024}, {0, 1}, 0), {{256, 1024}, {256}});
  expect_divided(fold_of(Op::reduce_sum, {64, 4099}, {0, 1}, 0), {{64, 4099}, {64}});
  expect_divided(fold_of(Op::reduce_sum, {64, 4096}, {0, 1}, 0), {{64, 4096}, {64}});
  expect_divided(fold_of(Op::reduce_max, {2, 32, 9, 1000}, {1, 2, 3}, 1), {{2, 32, 9, 1000}, {2, 32, 9}});
  expect_divided(fold_of(Op::reduce_sum, {40, 1, 40, 64}, {0, 2, 3}, 1, DType::bf16),
                 {{40, 1, 40, 64}, {40, 1, 40}});
  expect_divided(fold_of(Op::reduce_sum, {5000, 50, 2}, {0, 1, 2}, 0, DType::i64), {{500, 1000}, {500}});
}

TEST(DivideFolds, OthersAreEqualParts) {
  expect_divided(fold_of(Op::reduce_min, {1 << 16}, {0}, 1), {{512, 128}, {512}});
  expect_divided(fold_of(Op::reduce_sum, {3, 1 << 16}, {1}, 0, DType::f16), {{3, 512, 128}, {3, 512}});
  expect_divided(fold_of(Op::reduce_sum, {16, 1 << 18}, {0, 1}, 0), {{16, 256, 1024}, {16, 256}});
  expect_divided(fold_of(Op::reduce_sum, {8, 10000}, {0, 1}, 0), {{128, 625}, {128}});  // few dims
}

TEST(DivideFolds, WhatIsLeftBehindEqualPartsIsAPart) {
  expect_divided(fold_of(Op::reduce_sum, {65537}, {0}, 1), {{512, 128}, {1}, {513}});
  expect_divided(fold_of(Op::reduce_max, {3, 100003}, {1}, 0, DType::bf16),
                 {{3, 512, 192}, {3, 1699}, {3, 513}});
  expect_divided(fold_of(Op::reduce_prod, {67 * 1009}, {0}, 0, DType::f64),
                 {{67, 1009}, {67}});  // any divisor
}

/// A kernel that makes a scalar of whole numbers alone has no loop that threads take.
TEST(DivideFolds, AScalarOfWholeNumbersIsARow) {
  for (const DType dtype : {DType::i32, DType::f32}) {
    Graph graph = fold_of(Op::reduce_sum, {30, 40}, {0, 1}, 0, dtype);
    graph.outputs = {graph.add(Op::neg, {graph.outputs[0]})};
    const Graph made = divide_folds(graph);
    for (const Node& node : made.nodes())
      if (node.op == Op::reduce_sum)
        EXPECT_EQ(made.type(node.outputs[0]).dims(), dtype == DType::i32 ? Dims({1, 1}) : Dims());
    expect_same(graph, made, {whole_numbers(graph.type(graph.inputs[0]))});
  }
}

TEST(DivideFolds, ShortOrManyRowsAreOneFold) {
  expect_divided(fold_of(Op::reduce_sum, {1 << 15}, {0}, 1), {{1 << 15}});
  EXPECT_EQ(folds_in(divide_folds(fold_of(Op::reduce_sum, {256, 1 << 16}, {1}, 0))).size(), 1U);
  EXPECT_EQ(folds_in(divide_folds(fold_of(Op::reduce_sum, {1 << 16, 2}, {0}, 0))).size(), 1U);  // columns
}

Graph place_of(Op op, const Dims& dims, std::int64_t axis, std::int64_t keepdims, std::int64_t last,
               DType dtype) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(dtype, dims));
  graph.outputs = {graph.add(op, {x}, {{"axis", axis}, {"keepdims", keepdims}, {"select_last", last}})};
  return graph;
}

void expect_places(const Graph& whole, const std::vector<Dims>& folds) {
  const Graph divided = divide_places(whole);
  EXPECT_EQ(folds_in(divided), folds);
  expect_same(whole, divided, {whole_numbers(whole.type(whole.inputs[0]))});
}

TEST(DividePlaces, FewLongRowsAreSearchedByParts) {
  for (const Op op : {Op::arg_max, Op::arg_min})
    for (const std::int64_t last : {0, 1}) {
      expect_places(place_of(op, {1 << 16}, 0, last, last, DType::f32),
                    {{1, 512, 128}, {1, 512, 128}, {1, 512}});
      expect_places(place_of(op, {2, 65537, 1}, 1, 0, last, DType::bf16),
                    {{2, 512, 128}, {2, 512, 128}, {2, 1}, {2, 1}, {2, 513}});
    }
}

TEST(DividePlaces, WhatIsNoNumberIsGreatest) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  for (const Op op : {Op::arg_max, Op::arg_min})
    for (const auto& [place, value] :
         {std::pair(4000, nan), std::pair(7, infinity), std::pair(65536, -infinity), std::pair(65536, nan)}) {
      const Graph graph = place_of(op, {2, 65537}, 1, 0, 0, DType::f32);
      Tensor x = whole_numbers(graph.type(graph.inputs[0]));
      x.set_double(place, value);
      x.set_double(std::min(place + 2, 65536), value);
      for (std::int64_t i = 65537; i < 2 * 65537; ++i)
        x.set_double(i, op == Op::arg_max ? -infinity : infinity);
      expect_same(graph, divide_places(graph), {x});
    }
}

TEST(DividePlaces, OthersStay) {
  for (const Graph& graph : {place_of(Op::arg_max, {2, 70, 3}, 1, 0, 0, DType::f32),
                             place_of(Op::arg_max, {8, 100}, 1, 0, 0, DType::f32),
                             place_of(Op::arg_min, {1 << 16, 2}, 0, 0, 0, DType::f32),
                             place_of(Op::arg_max, {1 << 16}, 0, 0, 0, DType::i64)})
    expect_places(graph, {graph.type(graph.inputs[0]).dims()});
  expect_places(place_of(Op::arg_max, {8, 100, 1}, 1, 0, 0, DType::f32), {{8, 100}});  // the innermost
}

}  // namespace
}  // namespace sylvite::divide_folds_test
