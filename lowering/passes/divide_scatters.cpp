// Before: y = scatter_nd(x, indices, updates)    x f32[73, 64], 160,000 updates, which are added
// After:  y = x + reduce_sum(reshape(scatter_nd(zeros [64*73, 64], indices + 73 * part, updates)))
// Each row of a table is added to by one group of threads, in the order of the updates. Where few rows get many, and most of
// those the same row, as the places of a sequence do that lie beyond the farthest distance, parts are made at once.

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_parts = 64, least_updates = 4096, least_updates_of_row = 16;

std::int64_t parts_of_updates(std::int64_t updates) {
  std::int64_t parts = most_parts;
  while (updates % parts != 0) --parts;
  return parts;
}

/// Rows of floats that are added to rows of a table in the program's own memory.
bool is_taken_in_parts(const Graph& graph, const Node& node) {
  if (node.op != Op::scatter_nd || node.attributes.string("reduction") != "add") return false;
  const TensorType &table = graph.type(node.inputs[0]), &indices = graph.type(node.inputs[1]);
  if (table.dtype != DType::f32 || table.rank() == 0 || table.element_count() == 0 || indices.rank() == 0)
    return false;
  const std::int64_t updates = indices.element_count();
  const bool is_own = graph.is_constant(node.inputs[0]) || graph.value(node.inputs[0]).producer != no_node;
  return is_own && indices.dims().back() == 1 && updates >= least_updates &&
         updates >= least_updates_of_row * table.dims()[0];
}

bool divide_scatter(GraphRewriter& rewriter, const Node& node) {
  if (!is_taken_in_parts(rewriter.source(), node)) return false;
  Graph& graph = rewriter.graph();
  const std::vector<ValueId> inputs = rewriter.mapped(node.inputs);
  const Dims dims = graph.type(inputs[0]).dims();
  const DType index = graph.type(inputs[1]).dtype;
  const std::int64_t rows = dims[0], width = product(dims, 1, dims.size()),
                     updates = graph.type(inputs[1]).element_count(), parts = parts_of_updates(updates);
  if (parts == 1) return false;
  Tensor first_rows(index, {parts, 1}), row_count(index, {}), zero(index, {});
  for (std::int64_t part = 0; part < parts; ++part) first_rows.set_int64(part, part * rows);
  row_count.set_int64(0, rows);
  zero.set_int64(0, 0);
  const ValueId each = add_reshape(graph, inputs[1], {parts, updates / parts});
  const ValueId is_from_end = graph.add(Op::less, {each, graph.add_constant(zero)});
  const ValueId from_end = graph.add(Op::add, {each, graph.add_constant(row_count)});
  const ValueId row = graph.add(Op::where, {is_from_end, from_end, each});
  const ValueId own = graph.add(Op::add, {row, graph.add_constant(first_rows)});
  const ValueId zeros = graph.add(Op::broadcast_to, {graph.add_constant(Tensor(DType::f32, {}))},
                                  {{"shape", Dims{parts * rows, width}}});
  const ValueId sums = graph.add(
      Op::scatter_nd,
      {zeros, add_reshape(graph, own, {updates, 1}), add_reshape(graph, inputs[2], {updates, width})},
      node.attributes, node.name);
  const ValueId whole = graph.add(Op::reduce_sum, {add_reshape(graph, sums, {parts, rows, width})},
                                  {{"axes", Dims{0}}, {"keepdims", std::int64_t{0}}});
  rewriter.replace(node, Op::add, {inputs[0], add_reshape(graph, whole, dims)}, {});
  return true;
}

}  // namespace

Graph divide_scatters(const Graph& graph) {
  return rewrite_nodes(graph, divide_scatter);
}

}  // namespace sylvite
