// Before: y = reshape(layer_norm(reshape(x, [images, groups, rest])), [images, channels, lines, columns])
//         or y = layer_norm(x) over lines and columns
// After:  s = sums of x over pixels, q = sums of its squares, both f32 a channel, then a group
//         y = (x - mean) * r,   mean = s / n,   r = 1 / sqrt(q / n - mean^2 + epsilon)
// Group and instance normalisation (Wu and He, arXiv 1803.08494) of an image whose channels lie innermost: sums over pixels and
// work on each pixel take it as it lies.

#include <optional>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

struct GroupNorm {
  ValueId image = no_value;
  std::int64_t groups = 0;
  double epsilon = 0;
};

/// A normalisation of each channel by itself.
std::optional<GroupNorm> match_instances(const Graph& graph, const IdMap<bool>& images, const Node& norm) {
  const ValueId image = norm.inputs[0];
  if (norm.inputs.size() != 1 || norm.attributes.integer("axis") != 2 || !images[image]) return std::nullopt;
  return GroupNorm{image, graph.type(image).dims()[1], norm.attributes.real("epsilon")};
}

/// The normalisation whose result `reshape` makes an image again.
std::optional<GroupNorm> match_groups(const Graph& graph, const IdMap<bool>& images, const Node& reshape) {
  const Node* norm = producer_if(graph, reshape.inputs[0], Op::layer_norm);
  if (norm == nullptr || norm->inputs.size() != 1) return std::nullopt;
  const Node* cut = producer_if(graph, norm->inputs[0], Op::reshape);
  if (cut == nullptr || !images[cut->inputs[0]]) return std::nullopt;
  const Dims image = graph.type(cut->inputs[0]).dims(), rows = graph.type(norm->inputs[0]).dims();
  if (graph.type(reshape.outputs[0]).dims() != image) return std::nullopt;
  if (norm->attributes.integer("axis") != static_cast<std::int64_t>(rows.size()) - 1) return std::nullopt;
  const std::int64_t pixels = image[2] * image[3];
  if (rows.back() % pixels != 0 || image[1] % (rows.back() / pixels) != 0) return std::nullopt;
  return GroupNorm{cut->inputs[0], image[1] * pixels / rows.back(), norm->attributes.real("epsilon")};
}

class Builder {
 public:
  Builder(Graph& graph, ValueId image, std::int64_t groups)
      : graph_(graph), type_(graph.type(image)), groups_(groups) {}

  ValueId normalized(ValueId image, double epsilon) {
    const ValueId wide = add_cast(graph_, image, DType::f32);
    const ValueId mean = group_mean(wide), of_squares = group_mean(work(Op::mul, wide, wide));
    const ValueId variance =
        work(Op::maximum, work(Op::sub, of_squares, work(Op::mul, mean, mean)), number(0));
    const ValueId inverse = graph_.add(Op::rsqrt, {work(Op::add, variance, number(epsilon))});
    const ValueId centered = work(Op::sub, wide, per_channel(mean));
    return add_cast(graph_, work(Op::mul, centered, per_channel(inverse)), type_.dtype);
  }

 private:
  ValueId work(Op op, ValueId a, ValueId b) { return graph_.add(op, {a, b}); }
  ValueId number(double value) { return graph_.add_constant(Tensor::scalar_f32(static_cast<float>(value))); }

  /// [images, groups, 1] of an image in f32.
  ValueId group_mean(ValueId image) {
    const Dims dims = type_.dims();
    const Attributes pixels = {{"axes", Dims{2, 3}}, {"keepdims", std::int64_t{1}}};
    ValueId sum = graph_.add(Op::reduce_sum, {image}, pixels);
    sum = graph_.add(Op::reshape, {sum}, {{"shape", Dims{dims[0], groups_, dims[1] / groups_}}});
    if (groups_ != dims[1])
      sum = graph_.add(Op::reduce_sum, {sum}, {{"axes", Dims{2}}, {"keepdims", std::int64_t{1}}});
    const std::int64_t count = dims[1] / groups_ * dims[2] * dims[3];
    return work(Op::mul, sum, number(1.0 / static_cast<double>(count)));
  }

  /// As an operand of work on the image.
  ValueId per_channel(ValueId group) {
    const Dims dims = type_.dims();
    const std::int64_t members = dims[1] / groups_;
    if (groups_ == 1) return graph_.add(Op::reshape, {group}, {{"shape", Dims{dims[0], 1, 1, 1}}});
    if (members != 1)
      group = graph_.add(Op::broadcast_to, {group}, {{"shape", Dims{dims[0], groups_, members}}});
    return graph_.add(Op::reshape, {group}, {{"shape", Dims{dims[0], dims[1], 1, 1}}});
  }

  Graph& graph_;
  TensorType type_;
  std::int64_t groups_;
};

}  // namespace

Graph norm_images(const Graph& graph, bool tf32) {
  const IdMap<bool> images = innermost_images(graph, tf32);
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    std::optional<GroupNorm> norm;
    if (node.op == Op::reshape) norm = match_groups(graph, images, node);
    if (node.op == Op::layer_norm) norm = match_instances(graph, images, node);
    if (!norm) return false;
    const ValueId image = rewriter.mapped(norm->image);
    Builder builder(rewriter.graph(), image, norm->groups);
    rewriter.set(node.outputs[0], builder.normalized(image, norm->epsilon));
    return true;
  });
}

}  // namespace sylvite
