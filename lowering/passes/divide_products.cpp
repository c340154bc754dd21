// Before: y = matmul(transpose(g), x)                           [96, 200704] by [200704, 96]: one tile of a great depth
// After:  y = reduce_sum(matmul(transpose(g in 128 parts), x in 128 parts), parts)
// The gradients of weights of few columns, by all rows of a batch. A GPU is full when a hundred tiles of a result are made at once.

#include <algorithm>

#include "base/rounding.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// How many parts the depth has, for so many results; 1 where whole products fill a GPU as well.
std::int64_t parts_of(std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  constexpr std::int64_t tile = 128, wanted_tiles = 128, least_depth = 1024, least_parts = 4, tries = 4;
  const std::int64_t tiles = ceil_div(rows, tile) * ceil_div(columns, tile);
  const std::int64_t most = std::min(wanted_tiles / tiles, depth / least_depth);
  if (most < least_parts) return 1;
  // Rather fewer parts than a rest.
  for (std::int64_t parts = most; parts >= std::max(least_parts, most / tries); --parts)
    if (depth % parts == 0) return parts;
  return most;
}

/// The products of rows [start, start + parts * depth), each part's by itself, as f32.
ValueId add_products(Graph& graph, ValueId rows, ValueId x, std::int64_t start, std::int64_t parts,
                     std::int64_t depth, const std::string& name) {
  const auto part = [&](ValueId id) {
    const std::int64_t columns = graph.type(id).dims()[1];
    return add_reshape(graph, add_slice_along(graph, id, 0, start, parts * depth), {parts, depth, columns});
  };
  const ValueId turned = add_transpose(graph, part(rows), {0, 2, 1});
  return add_cast(graph, graph.add(Op::matmul, {turned, part(x)}, {}, name), DType::f32);
}

bool divide_product(GraphRewriter& rewriter, const Node& node) {
  if (node.op != Op::matmul) return false;
  const Graph& source = rewriter.source();
  const Node* turn = producer_if(source, node.inputs[0], Op::transpose);
  const TensorType result = source.type(node.outputs[0]);
  if (turn == nullptr || result.dims().size() != 2 || !is_float(result.dtype) || result.dtype == DType::f64 ||
      source.type(node.inputs[1]).dims().size() != 2 || result.element_count() == 0)
    return false;
  if (producer_if(source, node.inputs[1], Op::transpose) != nullptr || source.is_constant(node.inputs[1]))
    return false;
  const std::int64_t all = source.type(node.inputs[1]).dims()[0];
  const std::int64_t parts = parts_of(result.dims()[0], result.dims()[1], all);
  if (parts == 1) return false;
  Graph& graph = rewriter.graph();
  const ValueId rows = rewriter.mapped(turn->inputs[0]), x = rewriter.mapped(node.inputs[1]);
  const std::int64_t depth = all / parts, done = parts * depth;
  ValueId sum = graph.add(Op::reduce_sum, {add_products(graph, rows, x, 0, parts, depth, node.name)},
                          {{"axes", Dims{0}}, {"keepdims", std::int64_t{0}}});
  if (done < all) {
    const ValueId rest = add_products(graph, rows, x, done, 1, all - done, node.name);
    sum = graph.add(Op::add, {sum, add_reshape(graph, rest, result.dims())});
  }
  rewriter.set(node.outputs[0], add_cast(graph, sum, result.dtype));
  return true;
}

}  // namespace

Graph divide_products(const Graph& graph) {
  return rewrite_nodes(graph, divide_product);
}

}  // namespace sylvite
