// Before: y = transpose(add(matmul(transpose(x), W), bias))    x [images, tokens, channels], W [tokens, others]
// After:  y = add(matmul(transpose(W), x), bias of each row)
// Layers that mix tokens work on x turned round. A matrix of weights can stand on the left instead: then x is read where it lies,
// and its rows are whole vectors however many tokens there are. Products that follow each other are all turned.
//
// Before: y = matmul(x, v)       x [batches, rows, depth], v [batches, depth, 1]
// After:  y = matmul(v, transpose(x))    of v as [batches, 1, depth], and y as [batches, rows, 1]
// The row of few numbers fills one side of a tile, and both lie along the depth in whole vectors.

#include <algorithm>
#include <map>
#include <optional>

#include "base/rounding.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/column_work.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// Fewer columns of a product are better left as columns: tiles of templates would be nearly empty.
constexpr std::int64_t least_turned_rows = 16;

/// [batches, rows, columns] of a value whose transpose is [batches, columns, rows], where the dims of each lie together.
std::optional<Dims> exchanged(const Dims& dims, const Dims& perm) {
  const std::size_t rank = dims.size();
  std::size_t first = 0;  // of the dims that move
  while (first < rank && perm[first] == static_cast<std::int64_t>(first)) ++first;
  if (first == 0 || first == rank) return std::nullopt;
  const auto cut = static_cast<std::size_t>(perm[first]);
  Dims turned(perm.begin(), perm.begin() + static_cast<std::ptrdiff_t>(first));
  for (std::size_t d = cut; d < rank; ++d) turned.push_back(static_cast<std::int64_t>(d));
  for (std::size_t d = first; d < cut; ++d) turned.push_back(static_cast<std::int64_t>(d));
  if (perm != turned) return std::nullopt;
  return Dims{product(dims, 0, first), product(dims, first, cut), product(dims, cut, rank)};
}

Dims with_last(Dims dims, std::int64_t last) {
  dims.back() = last;
  return dims;
}

/// A value of the old graph, whose elements lie as [batches, rows, columns], `dims`, and the new one, [batches, columns, rows].
struct Turned {
  ValueId id = no_value;
  Dims dims;
};

class ProductTurner {
 public:
  ProductTurner(const Graph& graph, const LoweringOptions& options)
      : graph_(graph),
        readers_(graph.uses()),
        lie_innermost_(options.image_layout == ImageLayout::channels_last) {}

  bool rewrite(GraphRewriter& rewriter, const Node& node) {
    if (node.outputs.size() != 1) return false;
    if (node.op == Op::matmul) return turn_matmul(rewriter, node) || turn_column(rewriter, node);
    const auto input = std::ranges::find_if(node.inputs, [&](ValueId id) { return turned_.contains(id); });
    if (input == node.inputs.end()) return false;
    const Turned& turned = turned_.at(*input);
    if (node.op == Op::transpose)
      rewriter.set(node.outputs[0],
                   add_reshape(rewriter.graph(), turned.id, graph_.type(node.outputs[0]).dims()));
    else if (node.op == Op::reshape)
      turned_[node.outputs[0]] = turned;
    else
      turn_pointwise(rewriter, node, *input);
    return true;
  }

 private:
  /// Is the product of x, whose elements lie as `dims`, one by a matrix of weights that can stand on the left?
  [[nodiscard]] bool multiplies(const Node& node, ValueId x, const Dims& dims) const {
    if (node.op != Op::matmul || node.inputs[0] != x || !graph_.is_constant(node.inputs[1])) return false;
    const TensorType& weight = graph_.type(node.inputs[1]);
    const std::int64_t unit = elements_of_vector(weight.dtype);
    return is_for_tensor_cores(weight.dtype, false) && graph_.type(x).dtype == weight.dtype &&
           weight.rank() >= 2 && weight.element_count() == dims[2] * weight.dims().back() &&
           graph_.type(x).dims().back() == dims[2] && weight.dims().back() >= least_turned_rows &&
           dims[1] % unit == 0;
  }

  /// Does every path from a value whose elements lie as `dims` exchange the last two of these?
  [[nodiscard]] bool is_turned_back(ValueId id, const Dims& dims) const {
    const std::vector<NodeId>& readers = readers_[id];
    if (readers.empty() || std::ranges::find(graph_.outputs, id) != graph_.outputs.end()) return false;
    return std::ranges::all_of(readers, [&](NodeId reader) {
      const Node& node = graph_.node(reader);
      if (node.outputs.size() != 1) return false;
      const ValueId result = node.outputs[0];
      if (node.op == Op::transpose)
        return exchanged(graph_.type(id).dims(), node.attributes.integers("perm")) == dims;
      if (node.op == Op::reshape) return is_turned_back(result, dims);
      if (multiplies(node, id, dims))
        return is_turned_back(result, with_last(dims, graph_.type(result).dims().back()));
      return graph_.type(id).dims().back() == dims[2] && works_by_columns(graph_, node, id) &&
             is_turned_back(result, dims);
    });
  }

  /// Is it an image whose channels lie innermost, with its channels behind its pixels?
  [[nodiscard]] bool is_image_of_pixels(ValueId x) const {
    if (const Node* reshape = producer_if(graph_, x, Op::reshape)) x = reshape->inputs[0];
    const Node* transpose = producer_if(graph_, x, Op::transpose);
    return lie_innermost_ && transpose != nullptr && is_convolved(transpose->inputs[0]) &&
           transpose->attributes.integers("perm") == channels_behind(graph_.type(x).shape.size());
  }

  /// Is it the result of a convolution, or of pointwise work on such?
  [[nodiscard]] bool is_convolved(ValueId id) const {
    constexpr std::size_t most_seen = 64;
    std::vector<ValueId> open = {id};
    for (std::size_t seen = 0; !open.empty() && seen < most_seen; ++seen) {
      const NodeId producer = open.back() == no_value ? no_node : graph_.value(open.back()).producer;
      open.pop_back();
      if (producer == no_node) continue;
      const Node& node = graph_.node(producer);
      if (node.op == Op::conv) return true;
      if (has_trait(node.op, OpTrait::pointwise))
        open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
    return !open.empty();
  }

  /// What the value is a transpose of, where its last dim is the columns.
  [[nodiscard]] std::optional<Turned> transposed(GraphRewriter& rewriter, ValueId x) const {
    if (const auto found = turned_.find(x); found != turned_.end()) return found->second;
    if (is_image_of_pixels(x)) return std::nullopt;
    const Graph& graph = rewriter.graph();
    ValueId id = rewriter.mapped(x);
    if (const Node* reshape = producer_if(graph, id, Op::reshape)) id = reshape->inputs[0];
    const Node* transpose = producer_if(graph, id, Op::transpose);
    if (transpose == nullptr) return std::nullopt;
    const std::optional<Dims> lies =
        exchanged(graph.type(transpose->inputs[0]).dims(), transpose->attributes.integers("perm"));
    if (!lies || graph_.type(x).dims().back() != (*lies)[1]) return std::nullopt;
    return Turned{transpose->inputs[0], {(*lies)[0], (*lies)[2], (*lies)[1]}};
  }

  bool turn_matmul(GraphRewriter& rewriter, const Node& node) {
    const std::optional<Turned> x = transposed(rewriter, node.inputs[0]);
    if (!x || graph_.type(node.outputs[0]).element_count() == 0) return false;
    const Dims dims = with_last(x->dims, graph_.type(node.outputs[0]).dims().back());
    if (!multiplies(node, node.inputs[0], x->dims) || !is_turned_back(node.outputs[0], dims)) return false;
    Graph& graph = rewriter.graph();
    const ValueId weight = add_reshape(graph, rewriter.mapped(node.inputs[1]), {x->dims[2], dims[2]});
    const Dims source = graph.type(x->id).dims();
    const bool is_matrix =
        source.size() >= 3 && source.back() == x->dims[1] && source[source.size() - 2] == x->dims[2];
    const ValueId matrices =
        is_matrix ? x->id : add_reshape(graph, x->id, {x->dims[0], x->dims[2], x->dims[1]});
    const ValueId product =
        graph.add(Op::matmul, {left(graph, weight), matrices}, node.attributes, node.name);
    turned_[node.outputs[0]] = {product, dims};
    return true;
  }

  /// Of computed matrices of many batches, by a column each.
  bool turn_column(GraphRewriter& rewriter, const Node& node) const {
    constexpr std::int64_t least_batches = 128, least_rows = 16;
    const TensorType &x = graph_.type(node.inputs[0]), &column = graph_.type(node.inputs[1]);
    if (!x.is_known() || !column.is_known() || x.rank() < 3 || x.rank() != column.rank()) return false;
    const Dims dims = x.dims(), made = graph_.type(node.outputs[0]).dims();
    const std::size_t rank = dims.size();
    const bool is_column = column.dims() == columns_of(dims);
    if (!is_column || !is_for_tensor_cores(x.dtype, false) || column.dtype != x.dtype ||
        product(dims, 0, rank - 2) < least_batches || dims[rank - 2] < least_rows ||
        dims[rank - 1] % elements_of_vector(x.dtype) != 0)
      return false;
    Graph& graph = rewriter.graph();
    Dims row = column.dims();
    std::swap(row[rank - 2], row[rank - 1]);
    const ValueId turned =
        add_transpose(graph, rewriter.mapped(node.inputs[0]), last_two_swapped(static_cast<int>(rank)));
    const ValueId result =
        graph.add(Op::matmul, {add_reshape(graph, rewriter.mapped(node.inputs[1]), row), turned},
                  node.attributes, node.name);
    rewriter.set(node.outputs[0], add_reshape(graph, result, made));
    return true;
  }

  /// [..., rows, depth] as [..., depth, 1].
  static Dims columns_of(Dims dims) {
    dims[dims.size() - 2] = dims.back();
    return with_last(dims, 1);
  }

  /// The transpose of a matrix of weights, which lies in rows of whole vectors.
  static ValueId left(Graph& graph, ValueId weight) {
    const Dims dims = graph.type(weight).dims();
    const std::int64_t unit = elements_of_vector(graph.type(weight).dtype);
    const Dims whole = {dims[0], round_up(dims[1], unit)};
    if (whole != dims) {
      const ValueId padded = graph.add_constant(with_zeros_behind(*graph.value(weight).constant, whole));
      weight = add_slice(graph, padded, {0, 0}, dims, {1, 1});
    }
    return add_transpose(graph, weight, {1, 0});
  }

  void turn_pointwise(GraphRewriter& rewriter, const Node& node, ValueId x) {
    Graph& graph = rewriter.graph();
    const Turned before = turned_.at(x);
    std::vector<ValueId> inputs;
    inputs.reserve(node.inputs.size());
    for (const ValueId id : node.inputs)
      inputs.push_back(id == x
                           ? before.id
                           : add_reshape(graph, rewriter.mapped(id), {graph_.type(id).element_count(), 1}));
    turned_[node.outputs[0]] = {graph.add(node.op, inputs, node.attributes, node.name), before.dims};
  }

  const Graph& graph_;
  IdMap<std::vector<NodeId>> readers_;  ///< per value
  bool lie_innermost_;                  ///< images of convolutions do, with their channels
  std::map<ValueId, Turned> turned_;    ///< by value of the old graph
};

}  // namespace

Graph turn_products(const Graph& graph, const LoweringOptions& options) {
  ProductTurner turner(graph, options);
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return turner.rewrite(rewriter, node); });
}

}  // namespace sylvite
