// Before: y = matmul(concat(x, broadcast_to(m)), W)   x [32, 1000, 200], m [32, 1, 400]
// After:  y = matmul(x, W[:200] as [1, 200, n]) + matmul(m, W[200:])
// Layers of sets and of points see what all members have in common beside each of them. Its product is the same for all, and the
// concat need not be written. As matrices of a batch, not as rows of one, the others meet what is added to each in their epilogue.

#include "lowering/passes/multiply_repeated.h"

#include <cstring>
#include <optional>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"

namespace sylvite {
namespace {

constexpr std::int64_t least_repeated_rows = 256;  // of a matrix: several tiles of a template

/// Values that stand side by side along the depth of a product, and the weight's rows that they meet.
struct Parts {
  std::vector<ValueId> values;
  std::vector<std::pair<std::int64_t, std::int64_t>> rows;  ///< first, count

  void add(ValueId value, std::int64_t first, std::int64_t count) {
    values.push_back(value);
    rows.emplace_back(first, count);
  }
};
struct Concat {
  Parts each, repeated;
  Dims repeated_dims;  ///< of all of `repeated` but for the last
};

/// The dims of what is broadcast to `id` where it is the same for all rows, at the rank of the result; else empty.
Dims dims_of_repeated(const Graph& graph, ValueId id) {
  const Node* repeat = producer_if(graph, id, Op::broadcast_to);
  if (repeat == nullptr) return {};
  Dims dims = graph.type(repeat->inputs[0]).dims();
  const Dims whole = graph.type(id).dims();
  dims.insert(dims.begin(), whole.size() - dims.size(), 1);
  return dims.back() == whole.back() && dims[dims.size() - 2] == 1 ? dims : Dims{};
}

std::optional<Concat> find_concat(const Graph& graph, const Node& node) {
  if (node.op != Op::matmul || !graph.is_constant(node.inputs[1])) return std::nullopt;
  const TensorType &x = graph.type(node.inputs[0]), &weight = graph.type(node.inputs[1]);
  if (!x.is_known() || x.element_count() == 0 || x.rank() < 3 || weight.rank() != 2) return std::nullopt;
  const Dims dims = x.dims();
  const Node* concat = producer_if(graph, node.inputs[0], Op::concat);
  if (concat == nullptr || concat->attributes.integer("axis") + 1 != static_cast<std::int64_t>(x.rank()) ||
      dims[dims.size() - 2] < least_repeated_rows)
    return std::nullopt;
  Concat found;
  std::int64_t first = 0;
  for (const ValueId input : concat->inputs) {
    const std::int64_t count = graph.type(input).dims().back();
    Dims repeated = dims_of_repeated(graph, input);
    if (!repeated.empty()) repeated.pop_back();
    const bool is_alike = found.repeated.values.empty() || found.repeated_dims == repeated;
    if (repeated.empty()) {
      found.each.add(input, first, count);
    } else {
      if (!is_alike) return std::nullopt;
      found.repeated.add(producer_if(graph, input, Op::broadcast_to)->inputs[0], first, count);
      found.repeated_dims = repeated;
    }
    first += count;
  }
  if (found.each.values.empty() || found.repeated.values.empty()) return std::nullopt;
  return found;
}

Tensor rows_of(const Tensor& weight, const Parts& parts) {
  std::int64_t count = 0;
  for (const auto& [first, rows] : parts.rows) count += rows;
  Tensor result(weight.dtype(), {count, weight.dims()[1]});
  const std::size_t row = weight.byte_size() / static_cast<std::size_t>(weight.dims()[0]);
  auto* to = static_cast<char*>(result.mutable_data());
  for (const auto& [first, rows] : parts.rows) {
    const std::size_t bytes = row * static_cast<std::size_t>(rows);
    std::memcpy(to, static_cast<const char*>(weight.data()) + row * static_cast<std::size_t>(first), bytes);
    to += bytes;
  }
  return result;
}

ValueId multiply_part(Graph& graph, const Parts& parts, const std::vector<ValueId>& values,
                      const Tensor& weight, bool in_batches, const std::string& name) {
  const auto axis = static_cast<std::int64_t>(graph.type(values[0]).rank()) - 1;
  const ValueId x = values.size() == 1 ? values[0] : graph.add(Op::concat, values, {{"axis", axis}});
  const Tensor rows = rows_of(weight, parts);
  Dims dims = rows.dims();
  if (in_batches) dims.insert(dims.begin(), static_cast<std::size_t>(axis) - 1, 1);
  const ValueId factor = add_reshape(graph, graph.add_constant(rows), dims);
  return graph.add(Op::matmul, {x, factor}, {}, name);
}

bool rewrite(GraphRewriter& rewriter, const Node& node) {
  const std::optional<Concat> found = find_concat(rewriter.source(), node);
  if (!found) return false;
  Graph& graph = rewriter.graph();
  const Tensor& weight = *rewriter.source().value(node.inputs[1]).constant;
  std::vector<ValueId> each, repeated;
  for (const ValueId value : found->each.values) each.push_back(rewriter.mapped(value));
  for (const ValueId value : found->repeated.values) {
    Dims dims = found->repeated_dims;
    dims.push_back(rewriter.source().type(value).dims().back());
    repeated.push_back(add_reshape(graph, rewriter.mapped(value), dims));
  }
  rewriter.replace(node, Op::add,
                   {multiply_part(graph, found->each, each, weight, true, node.name),
                    multiply_part(graph, found->repeated, repeated, weight, false, "")});
  return true;
}

}  // namespace

Graph multiply_repeated(const Graph& graph) {
  return rewrite_nodes(graph, rewrite);
}

}  // namespace sylvite
