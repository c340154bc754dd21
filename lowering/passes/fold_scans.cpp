// Before: y = cumsum(x)   of x [outer, n, inner] along n
// After:  y = reduce_sum(where(j <= i, x[outer, 1, j, inner], 0))   over j of [outer, i, j, inner]
// or, of many elements in few rows:
//         y = cumsum(parts) + cumsum(reduce_sum(parts))   of parts [outer, n / 32, 32, inner]: along 32, and along n / 32
// Rows of floats, and columns of them side by side, which templates keep in registers, stay whole up to some length, and have
// parts of 1024 beyond.

#include "lowering/passes/fold_scans.h"

#include <numeric>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/images.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_terms = 1 << 26;  // of all sums
constexpr std::int64_t part_of_thread = 32;   // elements of a row that a thread adds up
constexpr std::int64_t part_of_block = 1024, least_of_block = 64, most_of_block = 1 << 13;

/// 0 to n - 1, in a shape of one long dim.
ValueId add_places(Graph& graph, std::int64_t n, Dims dims) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(n));
  std::iota(places.begin(), places.end(), 0);
  return graph.add_constant(Tensor::of(DType::i64, std::move(dims), places));
}

/// x [outer, n, inner], of which sums run along n.
struct Scan {
  ValueId x = no_value;
  std::int64_t outer = 1, n = 1, inner = 1;
  bool is_exclusive = false, is_reverse = false;

  /// So few that a thread for each leaves a GPU idle. Parts of rows that lie beside each other are read in whole lines.
  [[nodiscard]] bool is_of_few_rows() const {
    constexpr std::int64_t least_parts = 4, beside = 32;
    return n >= least_parts * part_of_thread && outer * inner < (inner >= beside ? 1 << 17 : 1 << 12);
  }
  [[nodiscard]] Attributes along(std::int64_t axis) const {
    return {{"axis", axis}, {"exclusive", std::int64_t{is_exclusive}}, {"reverse", std::int64_t{is_reverse}}};
  }
  [[nodiscard]] bool is_of_rows(const Graph& graph) const {
    return inner == 1 && n >= least_of_block && is_float(graph.type(x).dtype) &&
           graph.type(x).dtype != DType::f64;
  }
  [[nodiscard]] bool is_of_columns(const Graph& graph) const {
    constexpr std::int64_t least_beside = 8;
    return inner >= least_beside && is_float(graph.type(x).dtype) && graph.type(x).dtype != DType::f64;
  }
  [[nodiscard]] bool is_short() const { return n <= most_terms / n && n * n <= most_terms / (outer * inner); }
};

/// Sums, each by itself.
ValueId add_folds(Graph& graph, const Scan& scan) {
  const auto behind = [&](Dims ahead) {  // with the inner dim, where there is one
    if (scan.inner != 1) ahead.push_back(1);
    return ahead;
  };
  Dims apart = behind({scan.outer, 1, scan.n});
  if (scan.inner != 1) apart.back() = scan.inner;
  const ValueId x = graph.add(Op::reshape, {scan.x}, {{"shape", apart}});
  const ValueId sum = add_places(graph, scan.n, behind({scan.n, 1})),
                term = add_places(graph, scan.n, behind({scan.n}));
  const Op counts = scan.is_exclusive ? Op::less : Op::less_equal;
  const ValueId is_counted =
      graph.add(counts, scan.is_reverse ? std::vector{sum, term} : std::vector{term, sum});
  const ValueId zero = graph.add_constant(Tensor(graph.type(scan.x).dtype, {}));
  const ValueId terms = graph.add(Op::where, {is_counted, x, zero});
  return graph.add(Op::reduce_sum, {terms}, {{"axes", Dims{2}}, {"keepdims", std::int64_t{0}}});
}

ValueId add_scan(Graph& graph, const Scan& scan, const std::string& name);

/// Of [outer, n].
ValueId add_rows(Graph& graph, const Scan& scan, const std::string& name) {
  return graph.add(Op::cumsum, {add_reshape(graph, scan.x, {scan.outer, scan.n})}, scan.along(1), name);
}

/// Sums of parts, added to those of the parts ahead of each.
ValueId add_parts(Graph& graph, const Scan& scan, const std::string& name) {
  const bool has_rows = scan.is_of_rows(graph);
  const std::int64_t part = has_rows || scan.is_of_columns(graph) ? part_of_block : part_of_thread;
  const std::int64_t count = (scan.n + part - 1) / part, missing = count * part - scan.n;
  const ValueId filled = add_zeros_behind(graph, add_reshape(graph, scan.x, {scan.outer, scan.n, scan.inner}),
                                          {scan.outer, count * part, scan.inner});
  const ValueId parts = add_reshape(graph, filled, {scan.outer, count, part, scan.inner});
  const Scan of_part = {parts, scan.outer * count, part, 1, scan.is_exclusive, scan.is_reverse};
  const ValueId within =
      has_rows ? add_reshape(graph, add_rows(graph, of_part, name), {scan.outer, count, part, scan.inner})
               : graph.add(Op::cumsum, {parts}, scan.along(2), name);
  const ValueId whole =
      graph.add(Op::reduce_sum, {parts}, {{"axes", Dims{2}}, {"keepdims", std::int64_t{0}}});
  const ValueId others = add_scan(graph, {whole, scan.outer, count, scan.inner, true, scan.is_reverse}, name);
  const ValueId sums =
      graph.add(Op::add, {within, add_reshape(graph, others, {scan.outer, count, 1, scan.inner})});
  const ValueId rows = add_reshape(graph, sums, {scan.outer, count * part, scan.inner});
  return missing == 0 ? rows : add_slice(graph, rows, {0, 0, 0}, {scan.outer, scan.n, scan.inner}, {1, 1, 1});
}

ValueId add_scan(Graph& graph, const Scan& scan, const std::string& name) {
  if (scan.is_of_rows(graph))
    return scan.n <= most_of_block ? add_rows(graph, scan, name) : add_parts(graph, scan, name);
  const bool has_columns = scan.is_of_columns(graph);
  if (has_columns && scan.n > part_of_block) return add_parts(graph, scan, name);
  if (!has_columns && scan.is_short()) return add_folds(graph, scan);
  if (!has_columns && scan.is_of_few_rows()) return add_parts(graph, scan, name);
  const ValueId x = add_reshape(graph, scan.x, {scan.outer, scan.n, scan.inner});
  return graph.add(Op::cumsum, {x}, scan.along(1), name);
}

bool fold(GraphRewriter& rewriter, const Node& node) {
  const TensorType type = rewriter.source().type(node.inputs[0]);
  if (node.op != Op::cumsum || !type.is_known() || type.element_count() == 0) return false;
  const Dims dims = type.dims();
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  const Scan scan = {rewriter.mapped(node.inputs[0]),
                     product(dims, 0, axis),
                     dims[axis],
                     product(dims, axis + 1, dims.size()),
                     node.attributes.integer("exclusive") != 0,
                     node.attributes.integer("reverse") != 0};
  const ValueId sums = add_scan(rewriter.graph(), scan, node.name);
  rewriter.replace(node, Op::reshape, {sums}, {{"shape", dims}});
  return true;
}

}  // namespace

Graph fold_scans(const Graph& graph) {
  return rewrite_nodes(graph, fold);
}

}  // namespace sylvite
