// Before: y = cumsum(x)   of x [outer, n, inner] along n
// After:  y = reduce_sum(where(j <= i, x[outer, 1, j, inner], 0))   over j of [outer, i, j, inner]

#include "lowering/passes/fold_scans.h"

#include <numeric>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_terms = 1 << 26;  // of all sums

/// 0 to n - 1, in a shape of one long dim.
ValueId add_places(Graph& graph, std::int64_t n, Dims dims) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(n));
  std::iota(places.begin(), places.end(), 0);
  return graph.add_constant(Tensor::of(DType::i64, std::move(dims), places));
}

bool fold(GraphRewriter& rewriter, const Node& node) {
  const TensorType type = rewriter.source().type(node.inputs[0]);
  if (node.op != Op::cumsum || !type.is_known() || type.element_count() == 0) return false;
  const Dims dims = type.dims();
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  const std::int64_t n = dims[axis], outer = product(dims, 0, axis),
                     inner = product(dims, axis + 1, dims.size());
  if (n > most_terms / n || n * n > most_terms / (outer * inner)) return false;
  Graph& graph = rewriter.graph();
  const auto behind = [&](Dims ahead) {  // with the inner dim, where there is one
    if (inner != 1) ahead.push_back(1);
    return ahead;
  };
  Dims apart = behind({outer, 1, n});
  if (inner != 1) apart.back() = inner;
  const ValueId x = graph.add(Op::reshape, {rewriter.mapped(node.inputs[0])}, {{"shape", apart}});
  const ValueId sum = add_places(graph, n, behind({n, 1})), term = add_places(graph, n, behind({n}));
  const bool reverse = node.attributes.integer("reverse") != 0,
             exclusive = node.attributes.integer("exclusive") != 0;
  const Op counts = exclusive ? Op::less : Op::less_equal;
  const ValueId is_counted = graph.add(counts, reverse ? std::vector{sum, term} : std::vector{term, sum});
  const ValueId zero = graph.add_constant(Tensor(type.dtype, {}));
  const ValueId terms = graph.add(Op::where, {is_counted, x, zero});
  const ValueId sums = graph.add(Op::reduce_sum, {terms}, {{"axes", Dims{2}}, {"keepdims", std::int64_t{0}}});
  rewriter.replace(node, Op::reshape, {sums}, {{"shape", dims}});
  return true;
}

}  // namespace

Graph fold_scans(const Graph& graph) {
  return rewrite_nodes(graph, fold);
}

}  // namespace sylvite
