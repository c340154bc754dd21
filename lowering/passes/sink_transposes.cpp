// Before: y = add(transpose(a), transpose(b)), with the channels brought ahead of the pixels: perm [0,3,1,2], or as much for volumes
// After:  y = transpose(add(a, b))
// Of an image that a convolution makes the other way round, transposed back, nothing moves: its channels lie innermost.

#include <algorithm>
#include <optional>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

class Sinker {
 public:
  Sinker(const Graph& graph, bool tf32)
      : graph_(graph), tf32_(tf32), is_image_(innermost_images(graph, tf32)) {}

  bool rewrite(GraphRewriter& rewriter, const Node& node) {
    if (!has_trait(node.op, OpTrait::pointwise) || node.outputs.size() != 1) return false;
    if (!may_lie_innermost(graph_.type(node.outputs[0]), tf32_)) return false;
    Graph& graph = rewriter.graph();
    std::vector<ValueId> inputs;
    bool any = false;
    for (const ValueId id : node.inputs) {
      const std::optional<ValueId> behind = moved(rewriter, node, id);
      if (!behind) return false;
      inputs.push_back(*behind);
      any = any || is_computed_and_transposed(graph, rewriter.mapped(id));
    }
    if (!any) return false;
    const ValueId result = graph.add(node.op, inputs, node.attributes, node.name);
    rewriter.set(node.outputs[0],
                 add_transpose(graph, result, channels_ahead(graph_.type(node.outputs[0]).shape.size())));
    return true;
  }

 private:
  /// Images that come as inputs are transposed once, ahead of all work.
  static bool is_computed_and_transposed(const Graph& graph, ValueId id) {
    return is_transposed(graph, id) &&
           graph.value(graph.node(graph.value(id).producer).inputs[0]).producer != no_node;
  }
  static bool is_transposed(const Graph& graph, ValueId id) {
    const Node* transpose = producer_if(graph, id, Op::transpose);
    return transpose != nullptr && is_image(graph.type(id)) &&
           transpose->attributes.integers("perm") == channels_ahead(graph.type(id).shape.size());
  }

  /// The operand with its channels behind, where that moves nothing.
  [[nodiscard]] std::optional<ValueId> moved(GraphRewriter& rewriter, const Node& node, ValueId id) const {
    Graph& graph = rewriter.graph();
    const ValueId now = rewriter.mapped(id);
    const Dims dims = graph.type(now).dims(), whole = graph_.type(node.outputs[0]).dims();
    if (graph.type(now).element_count() == 1)
      return dims.size() <= whole.size() ? std::optional(now) : std::nullopt;
    if (graph.is_constant(now)) {
      const std::size_t pixel_dims = whole.size() - 2;
      const bool is_channels =
          dims.size() > pixel_dims && dims[dims.size() - pixel_dims - 1] == graph.type(now).element_count();
      return is_channels ? std::optional(add_reshape(graph, now, {graph.type(now).element_count()}))
                         : std::nullopt;
    }
    if (dims != whole || (!is_transposed(graph, now) && !is_image_[id])) return std::nullopt;
    return add_transpose(graph, now, channels_behind(whole.size()));
  }

  const Graph& graph_;
  bool tf32_;
  IdMap<bool> is_image_;  ///< per value
};

}  // namespace

Graph sink_transposes(const Graph& graph, bool tf32) {
  Sinker sinker(graph, tf32);
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return sinker.rewrite(rewriter, node); });
}

}  // namespace sylvite
