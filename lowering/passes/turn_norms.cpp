// Before: y = softmax(x) along another dim than the innermost; or x / sqrt(mean(x^2) + epsilon), which is rms_norm, and the same of
//         x - mean(x), which is layer_norm, with means over the channels of an image, or of rows that were turned to be one
// After:  y = transpose(softmax(transpose(x))) along the innermost dim; the transposes move nothing where x lies so
// Kernels take rows. The channels of an image that lies with its channels innermost are rows already. Columns that lie beside each
// other stay where there are many: threads that share one read whole lines.

#include <cmath>
#include <optional>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// The order of dims that moves a dim behind all others, and the one that moves it back.
struct Orders {
  Dims there, back;
};

Orders moves_behind(std::int64_t axis, std::int64_t rank) {
  Orders orders;
  for (std::int64_t d = 0; d < rank; ++d)
    if (d != axis) orders.there.push_back(d);
  orders.there.push_back(axis);
  for (std::int64_t d = 0; d < rank; ++d) orders.back.push_back(d < axis ? d : d == axis ? rank - 1 : d - 1);
  return orders;
}

/// Do threads for each column, which share one of many elements, keep a GPU busy?
bool has_many_columns(const Dims& dims, std::int64_t axis) {
  constexpr std::int64_t most_elements = 1024, beside = 32, many = 1 << 11;
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t inner = product(dims, at + 1, dims.size());
  return dims[at] <= most_elements && inner >= beside && product(dims, 0, at) * inner >= many;
}

ValueId behind_cast(const Graph& graph, ValueId id) {
  const Node* cast = producer_if(graph, id, Op::cast);
  return cast == nullptr ? id : cast->inputs[0];
}

/// What the mean over channels is of, if `id` is one.
std::optional<ValueId> of_channel_mean(const Graph& graph, ValueId id) {
  const Scaled mean = scaled(graph, id);
  const Node* sum = producer_if(graph, mean.base, Op::reduce_sum);
  if (sum == nullptr || sum->attributes.integers("axes") != Dims{1} ||
      sum->attributes.integer("keepdims") != 1)
    return std::nullopt;
  const auto channels = static_cast<double>(graph.type(sum->inputs[0]).dims().at(1));
  return std::abs(mean.factor * channels - 1.0) < 1e-5 ? std::optional(sum->inputs[0]) : std::nullopt;
}

struct ChannelNorm {
  Op op = Op::rms_norm;
  ValueId image = no_value;
  double epsilon = 0;
};

/// The norm that is `of` times or over `by`, if that is the root of its mean square, which `root_op` says how to take.
std::optional<ChannelNorm> match_channel_norm(const Graph& graph, ValueId of, ValueId by, Op root_op) {
  const Node* root = producer_if(graph, behind_cast(graph, by), root_op);
  const Node* sum =
      root == nullptr ? nullptr : producer_if(graph, behind_cast(graph, root->inputs[0]), Op::add);
  if (sum == nullptr) return std::nullopt;
  const std::optional<double> epsilon = scalar_constant(graph, sum->inputs[1]);
  const std::optional<ValueId> squared = of_channel_mean(graph, sum->inputs[0]);
  const Node* square = squared ? producer_if(graph, *squared, Op::mul) : nullptr;
  if (!epsilon || square == nullptr || square->inputs[0] != of || square->inputs[1] != of)
    return std::nullopt;
  const Node* centered = producer_if(graph, of, Op::sub);
  if (centered != nullptr && of_channel_mean(graph, centered->inputs[1]) == centered->inputs[0])
    return ChannelNorm{Op::layer_norm, centered->inputs[0], *epsilon};
  return ChannelNorm{Op::rms_norm, of, *epsilon};
}

/// Do the channels lie beside each other?
bool has_rows_of_channels(const Graph& graph, const IdMap<bool>& images, ValueId id) {
  if (images[id]) return true;
  const Node* turned = producer_if(graph, id, Op::transpose);
  return turned != nullptr &&
         turned->attributes.integers("perm") == channels_ahead(graph.type(id).dims().size());
}

/// Norms over the channels of images are of rows, as above.
bool turn_channel_norm(GraphRewriter& rewriter, const Node& node, const IdMap<bool>& images) {
  const Graph& graph = rewriter.source();
  std::optional<ChannelNorm> norm;
  const auto is_by = [&](ValueId of, ValueId by, Op root_op) {
    norm = match_channel_norm(graph, of, by, root_op);
    return norm.has_value();
  };
  const bool is_one = node.op == Op::div
                          ? is_by(node.inputs[0], node.inputs[1], Op::sqrt)
                          : node.op == Op::mul && either_order(node, [&](ValueId of, ValueId by) {
                              return is_by(of, by, Op::rsqrt);
                            });
  if (!is_one || !has_rows_of_channels(graph, images, norm->image) ||
      graph.type(norm->image) != graph.type(node.outputs[0]))
    return false;
  const auto [there, back] = moves_behind(1, graph.type(norm->image).rank());
  const ValueId rows = add_transpose(rewriter.graph(), rewriter.mapped(norm->image), there);
  const auto last = static_cast<std::int64_t>(there.size()) - 1;
  const ValueId made =
      rewriter.graph().add(norm->op, {rows}, {{"axis", last}, {"epsilon", norm->epsilon}}, node.name);
  rewriter.set(node.outputs[0], add_transpose(rewriter.graph(), made, back));
  return true;
}

}  // namespace

Graph turn_norms(const Graph& graph, bool tf32) {
  const IdMap<bool> images = innermost_images(graph, tf32);
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    if (turn_channel_norm(rewriter, node, images)) return true;
    if (node.op != Op::softmax && node.op != Op::log_softmax) return false;
    const TensorType& type = graph.type(node.inputs[0]);
    const std::int64_t last = type.rank() - 1, axis = node.attributes.integer("axis");
    const bool is_of_pixels = axis == 1 && images[node.inputs[0]];
    if (axis == last || (!is_of_pixels && has_many_columns(type.dims(), axis))) return false;
    const auto [there, back] = moves_behind(axis, type.rank());
    const ValueId rows = add_transpose(rewriter.graph(), rewriter.mapped(node.inputs[0]), there);
    Attributes attributes = node.attributes;
    attributes.set("axis", last);
    const ValueId made = rewriter.graph().add(node.op, {rows}, attributes, node.name);
    rewriter.set(node.outputs[0], add_transpose(rewriter.graph(), made, back));
    return true;
  });
}

}  // namespace sylvite
