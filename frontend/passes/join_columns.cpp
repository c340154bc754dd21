// Folds of a few columns of one value, side by side, are one fold of the columns that one gather takes:
//   concat(prod(x[i0, j0]), prod(x[i1, j1]), ...)   ->   prod(x[[i0, j0], [i1, j1], ...])
// The products of features that scikit-learn's PolynomialFeatures makes are hundreds of these.

#include <algorithm>
#include <optional>
#include <utility>

#include "frontend/graph/rewrite.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

constexpr std::size_t least_folds = 4;  ///< fewer stay

struct Fold {
  Op op;
  ValueId x = no_value;
  Dims columns;  ///< of x, along the axis

  [[nodiscard]] bool is_like(const Fold& other) const {
    return op == other.op && x == other.x && columns.size() == other.columns.size();
  }
};

/// What a gather or a slice takes along the axis, and leaves the other axes as they are; its source is its first input.
std::optional<Dims> columns_of(const Graph& graph, const Node& node, std::size_t axis) {
  const Dims dims = graph.type(node.inputs[0]).dims();
  Dims columns;
  if (node.op == Op::gather) {
    const Value& index = graph.value(node.inputs[1]);
    if (node.attributes.integer("axis") != static_cast<std::int64_t>(axis) || !index.constant ||
        index.type.rank() != 1)
      return std::nullopt;
    columns = index.constant->to_int64s();
    for (std::int64_t& column : columns) column += column < 0 ? dims[axis] : 0;
  } else if (node.op == Op::slice) {
    const Dims starts = node.attributes.integers("starts"), sizes = node.attributes.integers("sizes");
    for (std::size_t d = 0; d < dims.size(); ++d)  // one that takes all from elsewhere on turns it
      if (d != axis && (sizes[d] != dims[d] || starts[d] != 0)) return std::nullopt;
    const std::int64_t step = node.attributes.integers("steps")[axis];
    for (std::int64_t i = 0; i < sizes[axis]; ++i) columns.push_back(starts[axis] + i * step);
  }
  const bool are_there =
      std::ranges::all_of(columns, [&](std::int64_t column) { return column >= 0 && column < dims[axis]; });
  return columns.empty() || !are_there ? std::nullopt : std::optional(columns);
}

std::optional<Fold> fold_of(const Graph& graph, ValueId id, std::int64_t axis) {
  const NodeId maker = graph.value(id).producer;
  if (maker == no_node) return std::nullopt;
  const Node& fold = graph.node(maker);
  const bool is_fold = fold.op == Op::reduce_prod || fold.op == Op::reduce_sum || fold.op == Op::reduce_max ||
                       fold.op == Op::reduce_min;
  if (!is_fold || fold.attributes.integers("axes") != Dims{axis} || fold.attributes.integer("keepdims") != 1)
    return std::nullopt;
  const NodeId taker = graph.value(fold.inputs[0]).producer;
  if (taker == no_node) return std::nullopt;
  const Node& node = graph.node(taker);
  std::optional<Dims> columns = columns_of(graph, node, static_cast<std::size_t>(axis));
  if (!columns) return std::nullopt;
  return Fold{fold.op, node.inputs[0], std::move(*columns)};
}

ValueId add_joined(Graph& graph, const std::vector<Fold>& folds, std::int64_t axis) {
  const auto count = static_cast<std::int64_t>(folds.size()),
             each = static_cast<std::int64_t>(folds[0].columns.size());
  Tensor index(DType::i64, {count, each});
  std::int64_t at = 0;
  for (const Fold& fold : folds)
    for (const std::int64_t column : fold.columns) index.set_int64(at++, column);
  const ValueId columns =
      graph.add(Op::gather, {folds[0].x, graph.add_constant(std::move(index))}, {{"axis", axis}});
  return graph.add(folds[0].op, {columns}, {{"axes", Dims{axis + 1}}, {"keepdims", std::int64_t{0}}});
}

bool join(GraphRewriter& rewriter, const Node& node) {
  if (node.op != Op::concat || node.inputs.size() < least_folds) return false;
  Graph& graph = rewriter.graph();
  const std::int64_t axis = node.attributes.integer("axis");
  const std::vector<ValueId> parts = rewriter.mapped(node.inputs);
  std::vector<ValueId> joined;
  for (std::size_t begin = 0; begin < parts.size();) {
    std::vector<Fold> run;
    for (std::size_t i = begin; i < parts.size(); ++i) {
      std::optional<Fold> fold = fold_of(graph, parts[i], axis);
      if (!fold || (!run.empty() && !fold->is_like(run[0]))) break;
      run.push_back(std::move(*fold));
    }
    const std::size_t end = begin + std::max<std::size_t>(run.size(), 1);
    if (run.size() >= least_folds)
      joined.push_back(add_joined(graph, run, axis));
    else
      joined.insert(joined.end(), parts.begin() + static_cast<std::ptrdiff_t>(begin),
                    parts.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
  }
  if (joined.size() == parts.size()) return false;
  if (joined.size() == 1)
    rewriter.set(node.outputs[0], joined[0]);
  else
    rewriter.replace(node, Op::concat, std::move(joined), node.attributes);
  return true;
}

}  // namespace

Graph join_columns(const Graph& graph) {
  return rewrite_nodes(graph, join);
}

}  // namespace sylvite
