// Before: y = reduce_sum(mul(a, b), axes=[k])   of a [batches, rows, 1, k] and b [batches, 1, columns, k], in any order of dims
// After:  y = the dims in their order of matmul(a as [batches, rows, k], b as [batches, k, columns])

#include "lowering/passes/multiply_sums.h"

#include <algorithm>
#include <optional>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

constexpr std::int64_t least_sum_extent = 8;  // rows, columns and depth of a tile of tensor cores

/// What is multiplied along which dims of the product.
struct Contraction {
  ValueId a = no_value, b = no_value;
  Dims dims;  ///< of the product
  std::int64_t depth = 0;
  Dims batches, rows, columns;  ///< dims by number, ascending, but for `depth`
};

/// The value that is repeated, where that is written out.
ValueId unrepeated(const Graph& graph, ValueId id) {
  const Node* repeat = producer_if(graph, id, Op::broadcast_to);
  return repeat == nullptr ? id : repeat->inputs[0];
}

/// As many dims as the product has, ones ahead.
Dims dims_at_rank(const Graph& graph, ValueId id, std::size_t rank) {
  Dims dims = graph.type(id).dims();
  dims.insert(dims.begin(), rank - std::min(rank, dims.size()), 1);
  return dims;
}

std::optional<Contraction> find_contraction(const Graph& graph, const Node& node) {
  if (node.op != Op::reduce_sum || node.attributes.integers("axes").size() != 1) return std::nullopt;
  const Node* mul = producer_if(graph, node.inputs[0], Op::mul);
  if (mul == nullptr || !graph.type(mul->outputs[0]).is_known()) return std::nullopt;
  const DType dtype = graph.type(mul->outputs[0]).dtype;
  if (dtype != DType::f32 && dtype != DType::bf16 && dtype != DType::f16) return std::nullopt;
  Contraction found;
  found.a = unrepeated(graph, mul->inputs[0]);
  found.b = unrepeated(graph, mul->inputs[1]);
  found.dims = graph.type(mul->outputs[0]).dims();
  const std::size_t rank = found.dims.size();
  found.depth = node.attributes.integers("axes")[0];
  const Dims a = dims_at_rank(graph, found.a, rank), b = dims_at_rank(graph, found.b, rank);
  for (std::size_t d = 0; d < rank; ++d) {
    const auto dim = static_cast<std::int64_t>(d);
    if (dim == found.depth && (a[d] != b[d] || a[d] < least_sum_extent)) return std::nullopt;
    if (dim == found.depth) continue;
    if (a[d] == b[d] && a[d] != found.dims[d]) return std::nullopt;
    (a[d] == b[d] ? found.batches : b[d] == 1 ? found.rows : found.columns).push_back(dim);
  }
  const std::int64_t rows = product_of(found.dims, found.rows),
                     columns = product_of(found.dims, found.columns);
  if (std::min(rows, columns) < least_sum_extent) return std::nullopt;
  return found;
}

Dims joined_dims(std::initializer_list<const Dims*> parts) {
  Dims all;
  for (const Dims* part : parts) all.insert(all.end(), part->begin(), part->end());
  return all;
}

/// The operand as matrices: of its own dims, and those of the other, which are ones.
ValueId add_matrices(Graph& graph, ValueId id, std::size_t rank, const Dims& perm, const Dims& matrices) {
  const ValueId whole = add_reshape(graph, id, dims_at_rank(graph, id, rank));
  return add_reshape(graph, add_transpose(graph, whole, perm), matrices);
}

void multiply_sum(GraphRewriter& rewriter, const Node& node, const Contraction& of) {
  Graph& graph = rewriter.graph();
  const std::size_t rank = of.dims.size();
  const Dims depth = {of.depth};
  const std::int64_t batches = product_of(of.dims, of.batches), rows = product_of(of.dims, of.rows),
                     columns = product_of(of.dims, of.columns), deep = product_of(of.dims, depth);
  const ValueId a =
      add_matrices(graph, rewriter.mapped(of.a), rank,
                   joined_dims({&of.batches, &of.rows, &of.columns, &depth}), {batches, rows, deep});
  const ValueId b =
      add_matrices(graph, rewriter.mapped(of.b), rank,
                   joined_dims({&of.batches, &depth, &of.columns, &of.rows}), {batches, deep, columns});
  const ValueId product = graph.add(Op::matmul, {a, b});
  const Dims order = joined_dims({&of.batches, &of.rows, &of.columns, &depth});
  Dims apart, perm(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    apart.push_back(order[i] == of.depth ? 1 : of.dims[static_cast<std::size_t>(order[i])]);
    perm[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  const ValueId turned = add_transpose(graph, add_reshape(graph, product, apart), perm);
  rewriter.set(node.outputs[0], add_reshape(graph, turned, rewriter.source().type(node.outputs[0]).dims()));
}

}  // namespace

Graph multiply_sums(const Graph& graph) {
  return rewrite_nodes(graph, [](GraphRewriter& rewriter, const Node& node) {
    const std::optional<Contraction> found = find_contraction(rewriter.source(), node);
    if (!found) return false;
    multiply_sum(rewriter, node, *found);
    return true;
  });
}

}  // namespace sylvite
