#pragma once
// Helpers of the frontend tests: run one operation through the interpreter, and write tensors down.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <vector>

#include "base/error.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/verifier.h"
#include "sylvite/graph.h"

namespace sylvite {

using Ints = std::vector<std::int64_t>;

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

inline Tensor reals(const Dims& dims, const std::vector<double>& values, DType dtype = DType::f32) {
  Tensor tensor(dtype, dims);
  EXPECT_EQ(tensor.size(), static_cast<std::int64_t>(values.size()));
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, values[static_cast<std::size_t>(i)]);
  return tensor;
}

inline Tensor ints(const Dims& dims, const Ints& values, DType dtype = DType::i64) {
  Tensor tensor(dtype, dims);
  EXPECT_EQ(tensor.size(), static_cast<std::int64_t>(values.size()));
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_int64(i, values[static_cast<std::size_t>(i)]);
  return tensor;
}

/// 0, 1, 2, ... in row-major order.
inline Tensor counting(const Dims& dims, DType dtype = DType::f32) {
  Tensor tensor(dtype, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_int64(i, i);
  return tensor;
}

inline std::vector<double> values(const Tensor& tensor) {
  std::vector<double> result;
  result.reserve(static_cast<std::size_t>(tensor.size()));
  for (std::int64_t i = 0; i < tensor.size(); ++i) result.push_back(tensor.as_double(i));
  return result;
}

/// All outputs of one node over the given inputs; an absent optional input is nullopt.
inline std::vector<Tensor> run_all(Op op, const std::vector<std::optional<Tensor>>& inputs,
                                   Attributes attributes = {}) {
  Graph graph;
  std::vector<ValueId> ids;
  std::vector<Tensor> given;
  for (const std::optional<Tensor>& input : inputs) {
    ids.push_back(input ? graph.add_input("x", input->type()) : no_value);
    if (input) given.push_back(*input);
  }
  graph.outputs = graph.add_node(op, ids, std::move(attributes));
  verify(graph);
  return interpret(graph, given);
}

inline Tensor run(Op op, const std::vector<std::optional<Tensor>>& inputs, Attributes attributes = {}) {
  return run_all(op, inputs, std::move(attributes)).at(0);
}

}  // namespace sylvite
