// Before: s = reduce_sum(work(reshape(image, [N, G, C/G, pixels...]), m [N, G, 1, ...]), all dims from 2 on)
//         b = reshape(broadcast_to(m, [N, G, C/G, pixels...]), [N, C, pixels...])
// After:  s is made of sums over pixels of work(image, m for each channel), and b is m for each channel, broadcast
// Deviations of groups of channels, of an image whose channels lie innermost: either takes it as it lies. The reshape of such an
// image would bring its channels ahead of the pixels, and one of what is broadcast would write all of it.

#include <algorithm>
#include <vector>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// Is `split` the dims of an image whose channels are cut into groups: [N, G, C/G, pixels...], or [N, G, what is left]?
bool splits_channels(const Dims& image, const Dims& split) {
  const bool is_cut = split.size() >= 3 && split[0] == image[0] && split[1] != 0 && image[1] % split[1] == 0;
  if (!is_cut) return false;
  if (split.size() == 3) return true;
  return split.size() == image.size() + 1 && split[1] * split[2] == image[1] &&
         std::equal(image.begin() + 2, image.end(), split.begin() + 3);
}

/// Is it one number for each group at most?
bool is_of_groups(Dims operand, const Dims& split) {
  if (operand.size() > split.size()) return false;
  operand.insert(operand.begin(), split.size() - operand.size(), 1);
  return (operand[0] == 1 || operand[0] == split[0]) && (operand[1] == 1 || operand[1] == split[1]) &&
         std::all_of(operand.begin() + 2, operand.end(), [](std::int64_t extent) { return extent == 1; });
}

class Folder {
 public:
  Folder(const Graph& graph, bool tf32)
      : graph_(graph),
        tf32_(tf32),
        is_split_(graph.values().size(), false),
        is_folded_(graph.values().size(), false),
        image_dims_(graph.values().size()),
        images_(graph.values().size(), no_value),
        numbers_(graph.values().size(), no_value),
        uses_(graph.uses()) {
    const IdMap<bool> innermost = innermost_images(graph, tf32);
    for (const Node& node : graph.nodes()) find_split(node, innermost);
    for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) find_folded(*node);
  }

  bool rewrite(GraphRewriter& rewriter, const Node& node) {
    const ValueId out = node.outputs[0];
    if (node.op == Op::reshape) {
      if (is_split_[out] && is_folded_[out]) images_[out] = rewriter.mapped(node.inputs[0]);
      numbers_[out] = numbers_[node.inputs[0]];
      return spread(rewriter, node);
    }
    if (is_fold(node)) return fold(rewriter, node);
    if (is_split_[out] && is_folded_[out]) return work(rewriter, node);
    return has_trait(node.op, OpTrait::pointwise) && work_on_numbers(rewriter, node);
  }

 private:
  [[nodiscard]] Dims dims_of(ValueId id) const { return graph_.type(id).dims(); }

  void find_split(const Node& node, const IdMap<bool>& innermost) {
    if (node.outputs.size() != 1) return;
    const ValueId out = node.outputs[0];
    if (node.op == Op::reshape && innermost[node.inputs[0]]) {
      image_dims_[out] = dims_of(node.inputs[0]);
      is_split_[out] = splits_channels(image_dims_[out], dims_of(out));
      return;
    }
    if (!has_trait(node.op, OpTrait::pointwise)) return;
    const Dims dims = dims_of(out);
    bool fits = true;
    for (const ValueId id : node.inputs) {
      if (id != no_value && is_split_[id] && dims_of(id) == dims) {
        fits = fits && (!is_split_[out] || image_dims_[out] == image_dims_[id]);
        is_split_[out] = true;
        image_dims_[out] = image_dims_[id];
      } else {
        fits = fits && id != no_value && dims.size() > 2 && is_of_groups(dims_of(id), dims);
      }
    }
    is_split_[out] = is_split_[out] && fits;
  }

  [[nodiscard]] bool is_fold(const Node& node) const {
    if (node.op != Op::reduce_sum && node.op != Op::reduce_max && node.op != Op::reduce_min) return false;
    return is_split_[node.inputs[0]] &&
           node.attributes.integers("axes") == pixel_axes(dims_of(node.inputs[0]).size());
  }

  /// Only what is folded is better off as an image.
  void find_folded(const Node& node) {
    const bool is_folded = is_fold(node) || (has_trait(node.op, OpTrait::pointwise) &&
                                             is_split_[node.outputs[0]] && is_folded_[node.outputs[0]]);
    if (!is_folded) return;
    for (const ValueId id : node.inputs) is_folded_[id] = is_split_[id];
  }

  bool work(GraphRewriter& rewriter, const Node& node) {
    const ValueId out = node.outputs[0];
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs)
      inputs.push_back(images_[id] != no_value ? images_[id]
                                               : on_image(rewriter, id, dims_of(out), image_dims_[out]));
    images_[out] = rewriter.graph().add(node.op, inputs, node.attributes, node.name);
    rewriter.set(out, add_reshape(rewriter.graph(), images_[out], dims_of(out)));
    return true;
  }

  bool fold(GraphRewriter& rewriter, const Node& node) {
    const ValueId in = node.inputs[0];
    set_numbers(rewriter, node.outputs[0],
                add_group_fold(rewriter.graph(), node.op, images_[in], dims_of(in)[1]));
    return true;
  }

  void set_numbers(GraphRewriter& rewriter, ValueId out, ValueId made) {
    numbers_[out] = made;
    rewriter.set(out, add_reshape(rewriter.graph(), made, dims_of(out)));
  }

  /// Work on what is folded has its dims, however the graph cuts them, so that it is done where that is made.
  bool work_on_numbers(GraphRewriter& rewriter, const Node& node) {
    Graph& graph = rewriter.graph();
    std::vector<ValueId> inputs;
    ValueId numbers = no_value;
    for (const ValueId id : node.inputs) {
      if (id == no_value) return false;
      if (graph_.is_constant(id) && graph_.type(id).element_count() == 1) {
        inputs.push_back(add_reshape(graph, rewriter.mapped(id), {}));
        continue;
      }
      if (numbers == no_value) numbers = numbers_[id];
      if (numbers_[id] == no_value || graph.type(numbers_[id]).shape != graph.type(numbers).shape)
        return false;
      inputs.push_back(numbers_[id]);
    }
    const std::int64_t count = graph_.type(node.outputs[0]).element_count();
    if (numbers == no_value || graph.type(numbers).element_count() != count) return false;
    set_numbers(rewriter, node.outputs[0], graph.add(node.op, inputs, node.attributes, node.name));
    return true;
  }

  /// Numbers of groups as an operand of work on the image.
  ValueId on_image(GraphRewriter& rewriter, ValueId id, const Dims& split, const Dims& image) const {
    Graph& graph = rewriter.graph();
    if (numbers_[id] != no_value) return add_per_channel(graph, numbers_[id], image);
    Dims dims = dims_of(id);
    dims.insert(dims.begin(), split.size() - dims.size(), 1);
    return add_per_channel(graph, add_reshape(graph, rewriter.mapped(id), dims), image);
  }

  /// Is the value read by work alone that has its dims from other operands, so that it need not be broadcast?
  [[nodiscard]] bool is_broadcast_by_readers(ValueId id) const {
    if (uses_[id].empty() || std::ranges::find(graph_.outputs, id) != graph_.outputs.end()) return false;
    const auto gives_dims = [&](ValueId other) {
      return other != id && other != no_value && dims_of(other) == dims_of(id) &&
             producer_if(graph_, other, Op::reshape) == nullptr;
    };
    return std::ranges::all_of(uses_[id], [&](NodeId reader) {
      const Node& node = graph_.node(reader);
      return has_trait(node.op, OpTrait::pointwise) && std::ranges::any_of(node.inputs, gives_dims);
    });
  }

  bool spread(GraphRewriter& rewriter, const Node& node) const {
    const TensorType& image = graph_.type(node.outputs[0]);
    const Node* broadcast = producer_if(graph_, node.inputs[0], Op::broadcast_to);
    if (broadcast == nullptr || !may_lie_innermost(image, tf32_)) return false;
    const Dims split = dims_of(broadcast->outputs[0]), dims = image.dims();
    if (!splits_channels(dims, split) || !is_of_groups(dims_of(broadcast->inputs[0]), split)) return false;
    const ValueId small = on_image(rewriter, broadcast->inputs[0], split, dims);
    const bool stays_small = is_broadcast_by_readers(node.outputs[0]);
    rewriter.set(node.outputs[0],
                 stays_small ? small : rewriter.graph().add(Op::broadcast_to, {small}, {{"shape", dims}}));
    return true;
  }

  const Graph& graph_;
  bool tf32_;
  IdMap<bool> is_split_;    ///< per value: an image whose channels are cut into groups, or work on such
  IdMap<bool> is_folded_;   ///< per value: that, on the way to a fold
  IdMap<Dims> image_dims_;  ///< per value that is split: the image's
  IdMap<ValueId> images_;   ///< per value that is split and folded: the image in the new graph
  IdMap<ValueId> numbers_;  ///< per value that is made of folds alone: [images, groups, 1] in the new graph
  IdMap<std::vector<NodeId>> uses_;
};

}  // namespace

Graph fold_channel_groups(const Graph& graph, bool tf32) {
  Folder folder(graph, tf32);
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    return node.outputs.size() == 1 && folder.rewrite(rewriter, node);
  });
}

}  // namespace sylvite
