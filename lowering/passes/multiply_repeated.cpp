// Before: y = matmul(concat(x, broadcast_to(m)), W)   x [32, 1000, 200], m [32, 1, 400]
// After:  y = matmul(x, W[:200] as [1, 200, n]) + matmul(m, W[200:])
// The same of a convolution of single pixels, whose images have channels that all pixels share.
// Layers of sets and of points see what all members have in common beside each of them. Its product is the same for all, and the
// concat need not be written. As matrices of a batch, not as rows of one, the others meet what is added to each in their epilogue.

#include "lowering/passes/multiply_repeated.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"

namespace sylvite {
namespace {

constexpr std::int64_t least_repeated_rows = 256;  // of a matrix: several tiles of a template
constexpr std::int64_t least_repeated_pixels = 64;

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
  Dims repeated_dims;  ///< of all of `repeated` but for the depth

  /// Part i of `repeated` in the new graph, at the rank of the result, with its depth along `axis`. Its own rank may be any.
  [[nodiscard]] ValueId repeated_value(GraphRewriter& rewriter, std::size_t i, std::size_t axis) const {
    Dims dims = repeated_dims;
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), repeated.rows[i].second);
    return add_reshape(rewriter.graph(), rewriter.mapped(repeated.values[i]), dims);
  }
};

/// The dims of what is broadcast to `id`, at the rank of the result, where it is the same for all rows, if `axis` is the last dim, or
/// for all pixels; else empty.
Dims dims_of_repeated(const Graph& graph, ValueId id, std::size_t axis) {
  const Node* repeat = producer_if(graph, id, Op::broadcast_to);
  if (repeat == nullptr) return {};
  Dims dims = graph.type(repeat->inputs[0]).dims();
  const Dims whole = graph.type(id).dims();
  dims.insert(dims.begin(), whole.size() - dims.size(), 1);
  const bool is_last = axis + 1 == dims.size();
  const bool is_same = is_last
                           ? dims[axis - 1] == 1
                           : std::ranges::all_of(dims.begin() + 2, dims.end(), [](auto d) { return d == 1; });
  return dims[axis] == whole[axis] && is_same ? dims : Dims{};
}

/// The parts of what is concatenated along the depth of a product: the last dim of a matrix, the channels of images.
std::optional<Concat> concat_parts(const Graph& graph, ValueId id, std::size_t axis) {
  const Node* concat = producer_if(graph, id, Op::concat);
  if (concat == nullptr || concat->attributes.integer("axis") != static_cast<std::int64_t>(axis))
    return std::nullopt;
  Concat found;
  std::int64_t first = 0;
  for (const ValueId input : concat->inputs) {
    const std::int64_t count = graph.type(input).dims()[axis];
    Dims repeated = dims_of_repeated(graph, input, axis);
    if (!repeated.empty()) repeated.erase(repeated.begin() + static_cast<std::ptrdiff_t>(axis));
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

std::optional<Concat> find_concat(const Graph& graph, const Node& node) {
  if (!graph.is_constant(node.inputs[1])) return std::nullopt;
  const TensorType &x = graph.type(node.inputs[0]), &weight = graph.type(node.inputs[1]);
  if (!x.is_known() || x.element_count() == 0 || x.rank() < 3 || weight.rank() != 2) return std::nullopt;
  const Dims dims = x.dims();
  if (dims[dims.size() - 2] < least_repeated_rows) return std::nullopt;
  return concat_parts(graph, node.inputs[0], dims.size() - 1);
}

/// Of a convolution of single pixels, which stay where they are.
std::optional<Concat> find_channels(const Graph& graph, const Node& node) {
  const TensorType& x = graph.type(node.inputs[0]);
  if (!graph.is_constant(node.inputs[1]) || !x.is_known() || x.element_count() == 0 ||
      node.attributes.integer("groups") != 1)
    return std::nullopt;
  const Dims filter = graph.type(node.inputs[1]).dims();
  const auto is_all = [](const Dims& dims, std::int64_t number) {
    return std::ranges::all_of(dims, [&](std::int64_t each) { return each == number; });
  };
  if (product(filter, 2, filter.size()) != 1 || !is_all(node.attributes.integers("strides"), 1) ||
      !is_all(node.attributes.integers("pads"), 0) ||
      product(x.dims(), 2, x.dims().size()) < least_repeated_pixels)
    return std::nullopt;
  return concat_parts(graph, node.inputs[0], 1);
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

bool rewrite_product(GraphRewriter& rewriter, const Node& node) {
  const std::optional<Concat> found = find_concat(rewriter.source(), node);
  if (!found) return false;
  Graph& graph = rewriter.graph();
  const Tensor& weight = *rewriter.source().value(node.inputs[1]).constant;
  std::vector<ValueId> each, repeated;
  for (const ValueId value : found->each.values) each.push_back(rewriter.mapped(value));
  for (std::size_t i = 0; i < found->repeated.values.size(); ++i)
    repeated.push_back(found->repeated_value(rewriter, i, found->repeated_dims.size()));
  rewriter.replace(node, Op::add,
                   {multiply_part(graph, found->each, each, weight, true, node.name),
                    multiply_part(graph, found->repeated, repeated, weight, false, "")});
  return true;
}

/// [F, C, 1, ...], of which these channels.
Tensor channels_of(const Tensor& filter, const Parts& parts) {
  Dims dims = filter.dims();
  const std::int64_t channels = std::exchange(dims[1], 0);
  for (const auto& [first, count] : parts.rows) dims[1] += count;
  Tensor result(filter.dtype(), dims);
  const std::size_t size = dtype_size(filter.dtype());
  auto* to = static_cast<char*>(result.mutable_data());
  for (std::int64_t output = 0; output < dims[0]; ++output)
    for (const auto& [first, count] : parts.rows) {
      const std::size_t bytes = size * static_cast<std::size_t>(count);
      std::memcpy(to,
                  static_cast<const char*>(filter.data()) +
                      size * static_cast<std::size_t>(output * channels + first),
                  bytes);
      to += bytes;
    }
  return result;
}

/// Before: y = conv(concat(x, broadcast_to(m)), W)   m [32, 400, 1]; W of one tap
/// After:  y = conv(x, W[:, :200]) + conv(m, W[:, 200:])
bool rewrite_conv(GraphRewriter& rewriter, const Node& node) {
  const Graph& source = rewriter.source();
  const std::optional<Concat> found = find_channels(source, node);
  if (!found) return false;
  Graph& graph = rewriter.graph();
  const Tensor& filter = *source.value(node.inputs[1]).constant;
  const auto joined = [&](const std::vector<ValueId>& values) {
    return values.size() == 1 ? values[0] : graph.add(Op::concat, values, {{"axis", std::int64_t{1}}});
  };
  std::vector<ValueId> each, repeated;
  for (const ValueId value : found->each.values) each.push_back(rewriter.mapped(value));
  for (std::size_t i = 0; i < found->repeated.values.size(); ++i)
    repeated.push_back(found->repeated_value(rewriter, i, 1));
  std::vector<ValueId> inputs = {joined(each), graph.add_constant(channels_of(filter, found->each))};
  if (node.inputs.size() > 2) inputs.push_back(rewriter.mapped(node.inputs[2]));
  const ValueId own = graph.add(Op::conv, inputs, node.attributes, node.name);
  const ValueId same =
      graph.add(Op::conv, {joined(repeated), graph.add_constant(channels_of(filter, found->repeated))},
                node.attributes);
  rewriter.replace(node, Op::add, {own, same});
  return true;
}

bool rewrite(GraphRewriter& rewriter, const Node& node) {
  if (node.op == Op::conv) return rewrite_conv(rewriter, node);
  return node.op == Op::matmul && rewrite_product(rewriter, node);
}

}  // namespace

Graph multiply_repeated(const Graph& graph) {
  return rewrite_nodes(graph, rewrite);
}

}  // namespace sylvite
