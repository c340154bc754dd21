// Before: i = arg_max(x)                                of few long rows
// After:  m = reduce_max(x'), p = arg_max(x')           of x', the parts of each row
//         i = gather_elements(p + where parts begin, arg_max(m))
// Dims of one element behind the rows are left out: templates search along the innermost dim.

#include "frontend/graph/graph_builder.h"
#include "frontend/graph/rewrite.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/pass_list.h"
#include "lowering/passes/row_parts.h"

namespace sylvite {
namespace {

struct Search {
  Op place, extreme;
  std::int64_t takes_last = 0, rows = 1, length = 1;
};

/// What folds rows of floats, perhaps with dims of one element behind them; rows of none otherwise.
Search search_of(const Graph& graph, const Node& node) {
  const TensorType& type = graph.type(node.inputs[0]);
  const Dims dims = type.dims();
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  const bool fits_f32 = is_float(type.dtype) && dtype_size(type.dtype) <= dtype_size(DType::f32);
  const bool takes = fits_f32 && type.layout == Layout{} && product(dims, axis + 1, dims.size()) == 1;
  return {node.op, node.op == Op::arg_max ? Op::reduce_max : Op::reduce_min,
          node.attributes.integer("select_last"), takes ? product(dims, 0, axis) : 0, dims.at(axis)};
}

Sym places_in(const Search& search, Sym x, std::int64_t keepdims) {
  return x.builder().add(search.place, {x},
                         {{"axis", static_cast<std::int64_t>(x.dims().size()) - 1},
                          {"keepdims", keepdims},
                          {"select_last", search.takes_last}});
}

/// Of rows [rows, length]: [rows, 1].
Sym find_by_parts(const Search& search, Sym x) {
  const RowParts parts = parts_of_rows(search.rows, search.length);
  const std::int64_t end = parts.count * parts.length;
  GraphBuilder& builder = x.builder();
  const Sym counted = builder.add(Op::iota, {},
                                  {{"shape", Dims{parts.count}},
                                   {"axis", std::int64_t{0}},
                                   {"dtype", std::string(dtype_name(DType::i64))}});
  const Sym starts = counted * builder.scalar(DType::i64, static_cast<double>(parts.length));
  const Sym equal =
      reshape(parts.rest == 0 ? x : slice(x, 1, 0, end), {search.rows, parts.count, parts.length});
  Sym best = reduce(search.extreme, equal, {2}, false);
  Sym places = places_in(search, equal, 0) + reshape(starts, {1, parts.count});
  if (parts.rest != 0) {
    const Sym behind = slice(x, 1, end, search.length);
    best = concat({best, reduce(search.extreme, behind, {1}, true)}, 1);
    places = concat({places, places_in(search, behind, 1) + static_cast<double>(end)}, 1);
  }
  return builder.add(Op::gather_elements, {places, places_in(search, best, 1)}, {{"axis", std::int64_t{1}}});
}

bool divide_place(GraphRewriter& rewriter, const Node& node) {
  if (node.op != Op::arg_max && node.op != Op::arg_min) return false;
  const Graph& source = rewriter.source();
  const Search search = search_of(source, node);
  const bool is_long = are_few_and_long(search.rows, search.length);
  const bool is_last = node.attributes.integer("axis") + 1 == source.type(node.inputs[0]).rank();
  if (search.rows == 0 || (is_last && !is_long)) return false;
  GraphBuilder builder(rewriter.graph());
  const Sym x = reshape(Sym(builder, rewriter.mapped(node.inputs[0])), {search.rows, search.length});
  const Sym found = is_long ? find_by_parts(search, x) : places_in(search, x, 1);
  rewriter.set(node.outputs[0], reshape(found, source.type(node.outputs[0]).dims()).id());
  return true;
}

}  // namespace

Graph divide_places(const Graph& graph) {
  return rewrite_nodes(graph, divide_place);
}

}  // namespace sylvite
