// Norms of f16 values whose squares add up to more than f16 holds.

#include "frontend/build/normalization.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "frontend/graph/interpreter.h"

namespace sylvite::normalization_test {
namespace {

/// A wave of size 40: the squares of its 256 elements have a sum of 200,000, three times the largest f16.
Tensor wave_of(DType dtype) {
  Tensor wave(dtype, {1, 2, 128});
  for (std::int64_t i = 0; i < wave.size(); ++i)
    wave.set_double(i, std::round(40 * std::sin(0.7 * static_cast<double>(i))));
  return wave;
}

Tensor normalized(const std::string& kind, DType dtype) {
  Graph graph;
  GraphBuilder builder(graph);
  const Sym x = builder.input("x", dtype, {1, 2, 128});
  const Sym scale = builder.filled(dtype, {2}, 1.5), bias = builder.filled(dtype, {2}, 0.25);
  const Sym row = builder.filled(dtype, {1}, 1.0);
  if (kind == "group")
    builder.output(group_norm(x, scale, bias, 1, 1e-5), "y");
  else if (kind == "value")
    builder.output(standardized(x, 1, 1e-5), "y");
  else
    builder.output(layer_norm(x, row, row, 1, 1e-5),
                   "y");  // its scale is not of the shape that is normalised
  return interpret(graph, {wave_of(dtype)}).at(0);
}

TEST(Normalization, OfHalvesDoesNotOverflow) {
  for (const char* kind : {"group", "value", "layer"}) {
    const Tensor wide = normalized(kind, DType::f32), narrow = normalized(kind, DType::f16);
    for (std::int64_t i = 0; i < wide.size(); ++i)
      EXPECT_NEAR(narrow.as_double(i), wide.as_double(i), 4e-3) << kind << ' ' << i;
  }
}

}  // namespace
}  // namespace sylvite::normalization_test
