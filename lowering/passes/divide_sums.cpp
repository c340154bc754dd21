// Before: y = reduce_sum(x, [0, 2, 3])                     of x [images, channels, lines, columns]
// After:  y = reduce_sum(reduce_sum(x, [2, 3]), [0])
// A GPU is full when many blocks fold at once: a few columns of many rows are folded image by image first.

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// Folded dims ahead of the kept ones in memory: where rows are, and how many.
bool has_many_rows(const Dims& dims, const Dims& axes) {
  constexpr std::int64_t most_kept = 2048, least_images = 8, least_pixels = 64;
  std::int64_t kept = 1, rows = 1;
  for (std::size_t d = 0; d < dims.size(); ++d)
    (std::ranges::find(axes, static_cast<std::int64_t>(d)) == axes.end() ? kept : rows) *= dims[d];
  return axes.size() > 1 && axes[0] == 0 && kept > 1 && kept <= most_kept && dims[0] >= least_images &&
         rows / dims[0] >= least_pixels;
}

bool divide(GraphRewriter& rewriter, const Node& node) {
  if (node.op != Op::reduce_sum) return false;
  const TensorType& type = rewriter.source().type(node.inputs[0]);
  const Dims axes = node.attributes.integers("axes");
  if (!is_float(type.dtype) || type.element_count() == 0 || !has_many_rows(type.dims(), axes)) return false;
  Graph& graph = rewriter.graph();
  const TensorType& result = rewriter.source().type(node.outputs[0]);
  // Sums of images are not rounded.
  const DType sums = dtype_size(type.dtype) < dtype_size(DType::f32) ? DType::f32 : type.dtype;
  const ValueId wide = add_cast(graph, rewriter.mapped(node.inputs[0]), sums);
  const ValueId images =
      graph.add(Op::reduce_sum, {wide},
                {{"axes", Dims(axes.begin() + 1, axes.end())}, {"keepdims", std::int64_t{1}}}, node.name);
  const ValueId all = graph.add(Op::reduce_sum, {images}, {{"axes", Dims{0}}, {"keepdims", std::int64_t{1}}});
  const ValueId shaped =
      result.dims() == graph.type(all).dims() ? all : add_reshape(graph, all, result.dims());
  rewriter.set(node.outputs[0], add_cast(graph, shaped, result.dtype));
  return true;
}

}  // namespace

Graph divide_sums(const Graph& graph) {
  return rewrite_nodes(graph, divide);
}

}  // namespace sylvite
