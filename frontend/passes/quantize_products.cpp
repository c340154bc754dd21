#include "frontend/passes/quantize_products.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/parts.h"
#include "frontend/graph/made_weights.h"
#include "frontend/graph/rewrite.h"
#include "frontend/values/row_quantization.h"
#include "frontend/values/strided.h"

namespace sylvite {
namespace {

struct QuantizedMatrix {
  Tensor steps;   ///< i8, as the matrix
  Tensor scales;  ///< f32, one per column
  Tensor sums;    ///< i32, of each column's steps
};

/// Nothing for a matrix that is not finite.
std::optional<QuantizedMatrix> quantized(const Tensor& matrix) {
  const std::int64_t rows = matrix.dims()[0];
  const std::int64_t columns = matrix.dims()[1];
  QuantizedMatrix result{Tensor(DType::i8, matrix.dims()), Tensor(DType::f32, {columns}),
                         Tensor(DType::i32, {columns})};
  const auto* from = static_cast<const float*>(matrix.data());
  auto* steps = static_cast<std::int8_t*>(result.steps.mutable_data());
  auto* scales = static_cast<float*>(result.scales.mutable_data());
  auto* sums = static_cast<std::int32_t*>(result.sums.mutable_data());
  std::vector<float> inverses(static_cast<std::size_t>(columns));
  for_parts(columns, matrix.byte_size(), [&](std::int64_t begin, std::int64_t end) {
    std::fill(scales + begin, scales + end, 0.0F);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = begin; column < end; ++column) {
        const float magnitude = std::fabs(from[row * columns + column]);
        // NaN stays: nothing is less than it.
        if (!(magnitude <= scales[column])) scales[column] = magnitude;
      }
    }
    for (std::int64_t column = begin; column < end; ++column) {
      const float largest = scales[column];
      inverses[static_cast<std::size_t>(column)] = largest > smallest_range ? weight_levels / largest : 0;
      scales[column] = largest > smallest_range ? largest * (1 / weight_levels) : largest * 0;
    }
  });
  if (!std::all_of(scales, scales + columns, [](float scale) { return std::isfinite(scale); }))
    return std::nullopt;
  for_parts(columns, matrix.byte_size(), [&](std::int64_t begin, std::int64_t end) {
    std::fill(sums + begin, sums + end, 0);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = begin; column < end; ++column) {
        const std::int64_t at = row * columns + column;
        steps[at] =
            static_cast<std::int8_t>(std::nearbyintf(from[at] * inverses[static_cast<std::size_t>(column)]));
        sums[column] += steps[at];
      }
    }
  });
  return result;
}

/// The matrix that `id` is, if it is one to quantise; the transpose of a constant is made here.
std::optional<Tensor> constant_matrix(const Graph& graph, ValueId id) {
  const TensorType& type = graph.type(id);
  if (type.dtype != DType::f32 || type.rank() != 2) return std::nullopt;
  const Dims dims = type.dims();
  const bool is_large = dims[0] >= least_quantized_extent && dims[1] >= least_quantized_extent;
  if (!is_large || dims[0] > longest_quantized_fold) return std::nullopt;
  if (graph.is_constant(id)) return graph.value(id).constant;
  const Node* transpose = producer_if(graph, id, Op::transpose);
  if (transpose == nullptr || !graph.is_constant(transpose->inputs[0])) return std::nullopt;
  const Tensor& source = *graph.value(transpose->inputs[0]).constant;
  if (transpose->attributes.integers("perm") != Dims{1, 0}) return std::nullopt;
  return made_of("transposed 1,0", {source}, [&] { return transposed(source, {1, 0}); });
}

bool quantize_product(GraphRewriter& rewriter, const Node& node) {
  if (node.op != Op::matmul) return false;
  const Graph& source = rewriter.source();
  const std::optional<Tensor> matrix = constant_matrix(source, node.inputs[1]);
  if (!matrix || source.is_constant(node.inputs[0])) return false;
  std::optional<QuantizedMatrix> weight = quantized(*matrix);
  if (!weight) return false;
  Graph& graph = rewriter.graph();
  const std::string& name = source.value(node.inputs[1]).name;
  const ValueId steps = graph.add_constant(std::move(weight->steps), name + "_steps");
  const ValueId scales = graph.add_constant(std::move(weight->scales), name + "_scales");
  const ValueId sums = graph.add_constant(std::move(weight->sums), name + "_sums");
  const ValueId result =
      graph.add(Op::quantized_matmul, {rewriter.mapped(node.inputs[0]), steps, scales, sums}, {}, node.name);
  graph.rename(result, source.value(node.outputs[0]).name);
  rewriter.set(node.outputs[0], result);
  return true;
}

}  // namespace

Graph quantize_products(const Graph& graph) {
  return rewrite_nodes(graph, quantize_product);
}

}  // namespace sylvite
