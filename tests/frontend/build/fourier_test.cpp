// Transforms in two parts against one product with a matrix; that this is right is for the cases of the ONNX backend tests.

#include "frontend/build/fourier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "frontend/graph/interpreter.h"

namespace sylvite::fourier_test {
namespace {

Graph transform_of(std::int64_t length, std::int64_t extent, std::int64_t parts, const Fourier& fourier) {
  Graph graph;
  GraphBuilder builder(graph);
  const Sym x = builder.input("x", DType::f32, {2, 3, extent, parts});
  Fourier own = fourier;
  own.length = length;
  builder.output(fourier_transform(x, 2, own), "y");
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

/// The transform along dim 1 of [2, n, inner, parts] as its definition says, [2, outputs, inner, 2 or 1].
std::vector<double> by_definition(const Tensor& x, const Fourier& fourier, std::int64_t outputs) {
  const std::int64_t extent = x.dims()[1], inner = x.dims()[2], parts = x.dims()[3], n = fourier.length;
  const bool is_half = fourier.is_inverse && fourier.is_onesided;
  std::vector<double> made;
  for (std::int64_t i = 0; i < 2 * outputs * inner; ++i) {
    const std::int64_t image = i / (outputs * inner), output = i / inner % outputs, column = i % inner;
    std::complex<double> sum;
    for (std::int64_t place = 0; place < extent; ++place) {
      const std::int64_t at = ((image * extent + place) * inner + column) * parts;
      const std::complex<double> value(x.as_double(at), parts == 2 ? x.as_double(at + 1) : 0);
      const double angle =
          2 * std::numbers::pi * static_cast<double>(place * output % n) / static_cast<double>(n);
      sum += value * std::polar(1.0, fourier.is_inverse ? angle : -angle);
      if (is_half && place > 0 && 2 * place < n) sum += std::conj(value) * std::polar(1.0, -angle);
    }
    if (fourier.is_inverse) sum /= static_cast<double>(n);
    made.push_back(sum.real());
    if (!is_half) made.push_back(sum.imag());
  }
  return made;
}

TEST(Fourier, OneProductIsTheDefinitionWhateverLiesBehindTheAxis) {
  for (const std::int64_t inner : {1, 5, 64}) {
    for (Fourier fourier :
         {Fourier{14}, Fourier{14, false, true}, Fourier{14, true, false}, Fourier{9, true, true}}) {
      for (const std::int64_t parts : {1, 2}) {
        const bool is_half = fourier.is_inverse && fourier.is_onesided;
        const std::int64_t extent = is_half ? fourier.length / 2 + 1 : fourier.length;
        Graph graph;
        GraphBuilder builder(graph);
        const Dims dims{2, extent, inner, parts};
        builder.output(fourier_transform(builder.input("x", DType::f32, dims), 1, fourier), "y");
        Tensor x(DType::f32, dims);
        for (std::int64_t i = 0; i < x.size(); ++i)
          x.set_double(i, static_cast<double>(i * i % 61) / 61 - 0.4);
        const Tensor y = interpret(graph, {x}).at(0);
        const std::vector<double> wanted = by_definition(x, fourier, y.dims().at(1));
        ASSERT_EQ(static_cast<std::size_t>(y.size()), wanted.size());
        for (std::int64_t i = 0; i < y.size(); ++i)
          ASSERT_NEAR(y.as_double(i), wanted[static_cast<std::size_t>(i)], 1e-5)
              << inner << " behind, " << parts << " parts, " << fourier.is_inverse << fourier.is_onesided;
      }
    }
  }
}

}  // namespace
}  // namespace sylvite::fourier_test
