// Before: y = div(x, c)                       of 16 bits, c a constant
// After:  y = cast(mul(x, 1 / c))              by numbers of 32 bits
// A division is some ten instructions of a GPU; the inverse of 32 bits moves no more than a last bit of 16. Splines and bins divide by
// differences of their places.

#include <cmath>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// Numbers that have normal inverses.
bool have_inverses(const Tensor& numbers) {
  constexpr double least = 0x1p-100, most = 0x1p100;
  for (std::int64_t i = 0; i < numbers.size(); ++i) {
    const double size = std::abs(numbers.as_double(i));
    if (!(size >= least && size <= most)) return false;
  }
  return true;
}

Tensor inverses(const Tensor& numbers) {
  Tensor result(DType::f32, numbers.dims());
  for (std::int64_t i = 0; i < numbers.size(); ++i) result.set_double(i, 1 / numbers.as_double(i));
  return result;
}

bool multiply_inverse(GraphRewriter& rewriter, const Node& node) {
  constexpr std::int64_t most_numbers = 1 << 16;
  if (node.op != Op::div) return false;
  const Graph& source = rewriter.source();
  const TensorType &result = source.type(node.outputs[0]), &divisor = source.type(node.inputs[1]);
  const bool is_narrow = result.dtype == DType::bf16 || result.dtype == DType::f16;
  if (!is_narrow || !source.is_constant(node.inputs[1]) || divisor.layout.channel_block != 0 ||
      divisor.element_count() > most_numbers)
    return false;
  const Tensor& numbers = *source.value(node.inputs[1]).constant;
  if (!have_inverses(numbers)) return false;
  Graph& graph = rewriter.graph();
  const ValueId wide = add_cast(graph, rewriter.mapped(node.inputs[0]), DType::f32);
  const ValueId product = graph.add(Op::mul, {wide, graph.add_constant(inverses(numbers))}, {}, node.name);
  rewriter.set(node.outputs[0], add_cast(graph, product, result.dtype));
  return true;
}

}  // namespace

Graph multiply_inverses(const Graph& graph) {
  return rewrite_nodes(graph, multiply_inverse);
}

}  // namespace sylvite
