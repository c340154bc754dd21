// Before: y = reduce_sum(x, [0, 2, 3])                     of x [images, channels, lines, columns]
// After:  y = reduce_sum(reduce_sum(x, [2, 3]), [0])
// A GPU is full when many blocks fold at once: a few columns of many rows are folded image by image first. Where the dims that are folded first are the innermost in memory, they are made one: rows.
// A matrix of few columns is folded by parts of its rows first, and the pixels of few images line by line.

#include <algorithm>
#include <iterator>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/images.h"
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

Dims sorted(Dims axes) {
  std::ranges::sort(axes);
  return axes;
}

/// Images of so many channels lie with them outermost.
bool has_rows_of_pixels(const TensorType& type) {
  constexpr std::int64_t vector = 4;
  return !is_image(type) || type.dims()[1] % vector != 0;
}

/// The inner dims of pixels of few images whose sums for each channel would leave most of a GPU idle.
Dims innermost_of_pixels(const TensorType& type, const Dims& axes) {
  constexpr std::int64_t least_lines = 8;
  const Dims dims = type.dims();
  if (has_rows_of_pixels(type) || sorted(axes) != pixel_axes(dims.size()) || dims[2] < least_lines ||
      !has_few_strips(dims))
    return {};
  Dims first = sorted(axes);
  first.erase(first.begin());
  return first;
}

/// The axes that are folded first; none where the sum stays one.
Dims first_axes(const TensorType& type, const Dims& axes) {
  const Dims dims = type.dims();
  if (Dims inner = innermost_of_pixels(type, axes); !inner.empty()) return inner;
  if (!has_many_rows(dims, axes)) return {};
  Dims first = sorted(axes);
  first.erase(first.begin());
  return first;
}

/// The sum over these dims, kept as dims of one.
ValueId add_sum(Graph& graph, ValueId id, const Dims& axes, const std::string& name) {
  Dims dims = graph.type(id).dims();
  const auto first = static_cast<std::size_t>(axes.front());
  const bool are_last = axes.size() > 1 && dims.size() - first == axes.size();
  if (!are_last || !has_rows_of_pixels(graph.type(id)))
    return graph.add(Op::reduce_sum, {id}, {{"axes", axes}, {"keepdims", std::int64_t{1}}}, name);
  Dims rows(dims.begin(), dims.begin() + axes.front());
  rows.push_back(product(dims, first, dims.size()));
  // What is read is reshaped, not what is made of it.
  const Node* cast = producer_if(graph, id, Op::cast);
  const ValueId reshaped =
      cast == nullptr ? add_reshape(graph, id, rows)
                      : add_cast(graph, add_reshape(graph, cast->inputs[0], rows), graph.type(id).dtype);
  const ValueId sums = graph.add(Op::reduce_sum, {reshaped},
                                 {{"axes", Dims{axes.front()}}, {"keepdims", std::int64_t{1}}}, name);
  std::fill(dims.begin() + axes.front(), dims.end(), 1);
  return add_reshape(graph, sums, dims);
}

bool divide_sum(GraphRewriter& rewriter, const Node& node) {
  if (node.op != Op::reduce_sum) return false;
  const TensorType& type = rewriter.source().type(node.inputs[0]);
  const Dims axes = node.attributes.integers("axes");
  if (!is_float(type.dtype) || type.element_count() == 0) return false;
  const Dims first = first_axes(type, axes);
  if (first.empty()) return false;
  Graph& graph = rewriter.graph();
  const TensorType& result = rewriter.source().type(node.outputs[0]);
  Dims rest;
  std::ranges::set_difference(sorted(axes), first, std::back_inserter(rest));
  // Sums of images are not rounded.
  const DType sums = dtype_size(type.dtype) < dtype_size(DType::f32) ? DType::f32 : type.dtype;
  const ValueId images =
      add_sum(graph, add_cast(graph, rewriter.mapped(node.inputs[0]), sums), first, node.name);
  const ValueId all = graph.add(Op::reduce_sum, {images}, {{"axes", rest}, {"keepdims", std::int64_t{1}}});
  const ValueId shaped =
      result.dims() == graph.type(all).dims() ? all : add_reshape(graph, all, result.dims());
  rewriter.set(node.outputs[0], add_cast(graph, shaped, result.dtype));
  return true;
}

/// How many parts the rows of a matrix of few columns have; 1 where its columns fill a GPU.
std::int64_t parts_of_rows(const Dims& dims) {
  constexpr std::int64_t most_columns = 512, least_rows = 1 << 14, most_parts = 16, least_parts = 4;
  if (dims[0] < least_rows || dims[1] > most_columns) return 1;
  for (std::int64_t parts = most_parts; parts >= least_parts; --parts)
    if (dims[0] % parts == 0) return parts;
  return 1;
}

/// A sum of a matrix's rows, where these are in memory anyway: work that only the sum reads would be computed ahead of it.
bool divide_rows(GraphRewriter& rewriter, const Node& node, const IdMap<std::vector<NodeId>>& readers) {
  const Graph& source = rewriter.source();
  if (node.op != Op::reduce_sum || node.attributes.integers("axes") != Dims{0}) return false;
  const Node* cast = producer_if(source, node.inputs[0], Op::cast);
  const ValueId read = cast == nullptr ? node.inputs[0] : cast->inputs[0];
  const Dims dims = source.type(read).dims();
  const NodeId producer = source.value(read).producer;
  const bool is_work = producer != no_node && has_trait(source.node(producer).op, OpTrait::pointwise);
  if (dims.size() != 2 || !is_float(source.type(read).dtype) || (is_work && readers[read].size() < 2))
    return false;
  const std::int64_t parts = parts_of_rows(dims);
  if (parts == 1) return false;
  Graph& graph = rewriter.graph();
  const TensorType& result = rewriter.source().type(node.outputs[0]);
  const DType type = dtype_size(result.dtype) < dtype_size(DType::f32) ? DType::f32 : result.dtype;
  const ValueId rows = add_reshape(graph, rewriter.mapped(read), {parts, dims[0] / parts, dims[1]});
  const ValueId sums = graph.add(Op::reduce_sum, {add_cast(graph, rows, type)},
                                 {{"axes", Dims{1}}, {"keepdims", std::int64_t{0}}}, node.name);
  const ValueId all = graph.add(Op::reduce_sum, {sums},
                                {{"axes", Dims{0}}, {"keepdims", node.attributes.integer("keepdims")}});
  rewriter.set(node.outputs[0], add_cast(graph, all, result.dtype));
  return true;
}

}  // namespace

Graph divide_sums(const Graph& graph) {
  const IdMap<std::vector<NodeId>> readers = graph.uses();
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    return divide_sum(rewriter, node) || divide_rows(rewriter, node, readers);
  });
}

}  // namespace sylvite
