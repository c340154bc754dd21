// Transforms in two parts against one product with a matrix; that this is right is for the cases of the ONNX backend tests.

#include "frontend/build/fourier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "frontend/graph/interpreter.h"

namespace sylvite::fourier_test {
namespace {

Graph transform_of(std::int64_t length, std::int64_t extent, std::int64_t parts, const Fourier& fourier) {
  Graph graph;
  GraphBuilder builder(graph);
  const Sym x = builder.input("x", DType::f32, {2, 3, extent, parts});
  Fourier own = fourier;
  own.length = length;
  builder.output(fourier_transform(x, own), "y");
  return graph;
}

std::int64_t most_columns(const Graph& graph) {
  std::int64_t most = 0;
  for (const Node& node : graph.nodes())
    if (node.op == Op::matmul) most = std::max(most, graph.type(node.inputs[1]).dims().back());
  return most;
}

TEST(Fourier, LongTransformsInPartsAreThoseOfOneProduct) {
  for (const std::int64_t length : {256, 300, 512, 1000}) {
    for (const Fourier& fourier :
         {Fourier{}, Fourier{0, false, true}, Fourier{0, true, false}, Fourier{0, true, true}}) {
      for (const std::int64_t parts : {1, 2}) {
        const bool expands = fourier.is_inverse && fourier.is_onesided;
        const std::int64_t extent = expands ? length / 2 + 1 : length - 7;  // padded by zeros
        Fourier whole = fourier;
        whole.is_one_product = true;
        Tensor x(DType::f32, {2, 3, extent, parts});
        for (std::int64_t i = 0; i < x.size(); ++i)
          x.set_double(i, static_cast<double>(i * i % 61) / 61 - 0.4);
        const Graph in_parts = transform_of(length, extent, parts, fourier);
        EXPECT_LT(most_columns(in_parts), 100) << length;
        const Tensor y = interpret(in_parts, {x}).at(0);
        const Tensor wanted = interpret(transform_of(length, extent, parts, whole), {x}).at(0);
        ASSERT_EQ(y.dims(), wanted.dims());
        double largest = 0, worst = 0;
        for (std::int64_t i = 0; i < y.size(); ++i) {
          largest = std::max(largest, std::abs(wanted.as_double(i)));
          worst = std::max(worst, std::abs(y.as_double(i) - wanted.as_double(i)));
        }
        EXPECT_LT(worst, 1e-5 * largest) << length << " " << parts;
      }
    }
  }
}

TEST(Fourier, ShortOnesAndThoseWithoutFactorsAreOneProduct) {
  for (const std::int64_t length : {128, 509, 514})
    EXPECT_GT(most_columns(transform_of(length, length, 2, {})), 100) << length;
}

}  // namespace
}  // namespace sylvite::fourier_test
