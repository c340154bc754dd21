// Before: y = layer_norm(reshape(x, [images, groups, rest])), or layer_norm(x) over lines and columns
// After:  y = layer_norm(x) {axis=1, groups}, reshaped     where the device has a template for that (norm_groups), or
//         s = sums of x over pixels, q = sums of its squares, both f32 a channel, then a group
//         y = (x - mean) * r, reshaped,   mean = s / n,   r = 1 / sqrt(q / n - mean^2 + epsilon)
// Group and instance normalisation (Wu and He, arXiv 1803.08494) of an image whose channels lie innermost: either takes it as it
// lies. Of rms_norm, whose mean counts as 0, there are the sums alone.

#include <optional>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/images.h"
#include "lowering/passes/norm_groups.h"
#include "lowering/passes/pass_list.h"
#include "lowering/plan/kernel.h"

namespace sylvite {
namespace {

struct GroupNorm {
  ValueId image = no_value;
  std::int64_t groups = 0;
  double epsilon = 0;
  bool is_centered = true;  ///< the mean is taken off: layer_norm, not rms_norm
};

/// The image that `norm` normalises, as it is or cut into rows, one a group of channels.
std::optional<GroupNorm> match_group_norm(const Graph& graph, const IdMap<bool>& images, const Node& norm) {
  const bool is_centered = norm.op == Op::layer_norm;
  if ((!is_centered && norm.op != Op::rms_norm) || norm.inputs.size() != 1 || norm.attributes.has("groups"))
    return std::nullopt;
  const Dims rows = graph.type(norm.inputs[0]).dims();
  const std::int64_t axis = norm.attributes.integer("axis");
  const double epsilon = norm.attributes.real("epsilon");
  if (images[norm.inputs[0]] && axis == 2) return GroupNorm{norm.inputs[0], rows[1], epsilon, is_centered};
  const Node* cut = producer_if(graph, norm.inputs[0], Op::reshape);
  if (cut == nullptr || !images[cut->inputs[0]] || axis != static_cast<std::int64_t>(rows.size()) - 1)
    return std::nullopt;
  const Dims image = graph.type(cut->inputs[0]).dims();
  const std::int64_t pixels = product(image, 2, image.size());
  if (rows.back() % pixels != 0 || image[1] % (rows.back() / pixels) != 0) return std::nullopt;
  return GroupNorm{cut->inputs[0], image[1] * pixels / rows.back(), epsilon, is_centered};
}

ValueId add_norm(Graph& graph, ValueId image, const GroupNorm& norm) {
  return graph.add(Op::layer_norm, {image},
                   {{"axis", std::int64_t{1}}, {"groups", norm.groups}, {"epsilon", norm.epsilon}});
}

/// Does the device norm such images by one kernel that fills it?
bool has_norm_template(const TensorType& image, const GroupNorm& norm, const LoweringOptions& options) {
  if (!norm.is_centered || has_few_strips(image.dims())) return false;
  Graph body;
  TensorType type = image;
  type.layout.channel_block = static_cast<int>(image.dims()[1]);
  body.outputs = {add_norm(body, body.add_input("x", type), norm)};
  body.value(body.outputs[0]).type.layout = type.layout;
  return options.refuse_template(make_kernel(body, {false})).empty();
}

class Builder {
 public:
  Builder(Graph& graph, ValueId image, std::int64_t groups)
      : graph_(graph), type_(graph.type(image)), groups_(groups) {}

  ValueId normalized(ValueId image, const GroupNorm& norm) {
    const ValueId wide = add_cast(graph_, image, DType::f32);
    ValueId variance = group_mean(work(Op::mul, wide, wide)), centered = wide;
    if (norm.is_centered) {
      const ValueId mean = group_mean(wide);
      variance = work(Op::maximum, work(Op::sub, variance, work(Op::mul, mean, mean)), number(0));
      centered = work(Op::sub, wide, per_channel(mean));
    }
    const ValueId inverse = graph_.add(Op::rsqrt, {work(Op::add, variance, number(norm.epsilon))});
    return add_cast(graph_, work(Op::mul, centered, per_channel(inverse)), type_.dtype);
  }

 private:
  ValueId work(Op op, ValueId a, ValueId b) { return graph_.add(op, {a, b}); }
  ValueId number(double value) { return graph_.add_constant(Tensor::scalar_f32(static_cast<float>(value))); }

  /// [images, groups, 1] of an image in f32.
  ValueId group_mean(ValueId image) {
    const Dims dims = type_.dims();
    const std::int64_t count = dims[1] / groups_ * product(dims, 2, dims.size());
    return work(Op::mul, add_group_fold(graph_, Op::reduce_sum, image, groups_),
                number(1.0 / static_cast<double>(count)));
  }

  /// As an operand of work on the image.
  ValueId per_channel(ValueId group) { return add_per_channel(graph_, group, type_.dims()); }

  Graph& graph_;
  TensorType type_;
  std::int64_t groups_;
};

}  // namespace

Graph norm_groups(const Graph& graph, const LoweringOptions& options) {
  const IdMap<bool> images = innermost_images(graph, options.tf32);
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    const std::optional<GroupNorm> norm = match_group_norm(graph, images, node);
    if (!norm || !has_norm_template(graph.type(norm->image), *norm, options)) return false;
    const ValueId made = add_norm(rewriter.graph(), rewriter.mapped(norm->image), *norm);
    rewriter.set(node.outputs[0], add_reshape(rewriter.graph(), made, graph.type(node.outputs[0]).dims()));
    return true;
  });
}

Graph norm_images(const Graph& graph, bool tf32) {
  const IdMap<bool> images = innermost_images(graph, tf32);
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    const std::optional<GroupNorm> norm = match_group_norm(graph, images, node);
    if (!norm) return false;
    const ValueId image = rewriter.mapped(norm->image);
    Builder builder(rewriter.graph(), image, norm->groups);
    rewriter.set(node.outputs[0], add_reshape(rewriter.graph(), builder.normalized(image, *norm),
                                              graph.type(node.outputs[0]).dims()));
    return true;
  });
}

}  // namespace sylvite
