#pragma once
// Quick evaluations beside those of the reference.

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "frontend/graph/interpreter.h"
#include "frontend/quick/quick.h"

namespace sylvite {

using Inputs = std::vector<std::optional<Tensor>>;

inline constexpr int threads = 3;

/// Numbers of both signs, about 1 in size, that repeat late.
inline Tensor waves(const Dims& dims, DType dtype = DType::f32, double phase = 0) {
  Tensor tensor(dtype, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    tensor.set_double(i, 1.5 * std::sin(static_cast<double>(i) * 0.7 + phase + static_cast<double>(i % 13)));
  return tensor;
}

inline Tensor positive(const Dims& dims) {
  Tensor tensor = waves(dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, std::fabs(tensor.as_double(i)) + 0.1);
  return tensor;
}

inline void expect_equal(const Tensor& got, const Tensor& wanted, double tolerance) {
  ASSERT_EQ(got.type(), wanted.type());
  double scale = 0;
  for (std::int64_t i = 0; i < wanted.size(); ++i)
    if (std::isfinite(wanted.as_double(i))) scale = std::max(scale, std::fabs(wanted.as_double(i)));
  for (std::int64_t i = 0; i < wanted.size(); ++i) {
    const double x = got.as_double(i), y = wanted.as_double(i);
    if (std::isnan(y) || std::isinf(y))
      ASSERT_TRUE(std::isnan(y) ? std::isnan(x) : x == y)
          << "element " << i << ": " << x << ", expected " << y;
    else
      ASSERT_NEAR(x, y, tolerance * scale) << "element " << i;
  }
}

inline void expect_as_reference(Op op, const Inputs& inputs, const Attributes& attributes = {},
                                double tolerance = 2e-6) {
  Graph graph;
  std::vector<ValueId> ids;
  std::vector<Tensor> given;
  for (const std::optional<Tensor>& input : inputs) {
    ids.push_back(input ? graph.add_input("x", input->type()) : no_value);
    if (input) given.push_back(*input);
  }
  graph.outputs = graph.add_node(op, ids, attributes);
  const std::vector<Tensor> wanted = interpret(graph, given);
  const std::vector<Tensor> got = interpret_quickly(graph, given, threads);
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) expect_equal(got[i], wanted[i], tolerance);
}

}  // namespace sylvite
