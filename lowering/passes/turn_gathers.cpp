// Before: y = gather_elements(x, broadcast_to(i)) {axis=2}     x [images, channels, pixels], i [images, 1, places]
// After:  y = transpose(gather_elements(transpose(x), broadcast_to(reshape(i))) {axis=1})     of rows of channels, [0,2,1]
// The channels of a place lie beside each other, so that one thread reads many of them, and makes the place and its weight once for
// these. Three channels, as colours are, get a fourth one of zeros for it, which work on them keeps. The transpose back comes behind
// pointwise work with numbers for places, and behind reshapes that part the places.

#include <map>
#include <optional>

#include "base/rounding.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// From [images, places..., channels] to [images, channels, places...].
Dims ahead(std::size_t rank) {
  Dims perm{0, static_cast<std::int64_t>(rank) - 1};
  for (std::int64_t d = 1; d + 1 < static_cast<std::int64_t>(rank); ++d) perm.push_back(d);
  return perm;
}

/// [images, channels, places...] as [images, places..., channels].
Dims with_channels_behind(const Dims& dims) {
  Dims result{dims[0]};
  result.insert(result.end(), dims.begin() + 2, dims.end());
  result.push_back(dims[1]);
  return result;
}

constexpr std::int64_t channels_of_vector = 4;

class GatherTurner {
 public:
  bool rewrite(GraphRewriter& rewriter, const Node& node) {
    if (node.op == Op::gather_elements) return gather(rewriter, node);
    if (node.op == Op::reshape) return part(rewriter, node);
    return has_trait(node.op, OpTrait::pointwise) && node.outputs.size() == 1 && work(rewriter, node);
  }

 private:
  bool gather(GraphRewriter& rewriter, const Node& node) {
    const Graph& source = rewriter.source();
    const Node* repeated = producer_if(source, node.inputs[1], Op::broadcast_to);
    if (repeated == nullptr || node.attributes.integer("axis") != 2) return false;
    const TensorType& image = source.type(node.inputs[0]);
    const Dims index = source.type(repeated->inputs[0]).dims(), made = source.type(node.outputs[0]).dims();
    if (made.size() != 3 || index != Dims{made[0], 1, made[2]} || !is_worth_it(image, made[2])) return false;
    Graph& graph = rewriter.graph();
    const ValueId place =
        add_reshape(graph, rewriter.mapped(repeated->inputs[0]), with_channels_behind(index));
    Dims all_dims = with_channels_behind(made);
    all_dims.back() = round_up(made[1], channels_of_vector);
    const ValueId all = graph.add(Op::broadcast_to, {place}, {{"shape", all_dims}});
    const ValueId rows = rows_of(graph, rewriter.mapped(node.inputs[0]));
    set_turned(rewriter, node,
               graph.add(Op::gather_elements, {rows, all}, {{"axis", std::int64_t{1}}}, node.name));
    return true;
  }

  /// [images, pixels, channels] of an image, once for all that gather of it.
  ValueId rows_of(Graph& graph, ValueId image) {
    const auto [found, added] = rows_.try_emplace(image, no_value);
    if (added) {
      Dims dims = graph.type(image).dims();
      dims[1] = round_up(dims[1], channels_of_vector);
      found->second = add_transpose(graph, add_zeros_behind(graph, image, dims), {0, 2, 1});
    }
    return found->second;
  }

  /// Channels that are whole vectors, or colours, and places that are worth the move of all pixels.
  static bool is_worth_it(const TensorType& image, std::int64_t places) {
    constexpr std::int64_t least_channels = 8, colours = 3;
    const std::int64_t channels = image.dims()[1], pixels = image.dims()[2];
    const bool is_whole = channels >= least_channels && channels % channels_of_vector == 0;
    return (is_whole && 4 * places >= pixels) || (channels == colours && places >= pixels);
  }

  bool part(GraphRewriter& rewriter, const Node& node) {
    const Dims shape = rewriter.source().type(node.outputs[0]).dims();
    const std::optional<ValueId> inner = turned(node.inputs[0]);
    if (!inner || shape.size() < 3) return false;
    const Dims whole = rewriter.source().type(node.inputs[0]).dims();
    if (shape[0] != whole[0] || shape[1] != whole[1]) return false;
    Dims dims = with_channels_behind(shape);
    dims.back() = rewriter.graph().type(*inner).dims().back();
    set_turned(rewriter, node, add_reshape(rewriter.graph(), *inner, dims));
    return true;
  }

  bool work(GraphRewriter& rewriter, const Node& node) {
    const Dims whole = rewriter.source().type(node.outputs[0]).dims();
    std::vector<ValueId> inputs;
    bool any = false;
    for (const ValueId id : node.inputs) {
      const std::optional<ValueId> inner = turned(id), operand = inner ? inner : shared(rewriter, id, whole);
      if (!operand || (inner && rewriter.source().type(id).dims() != whole)) return false;
      any = any || inner;
      inputs.push_back(*operand);
    }
    if (!any) return false;
    set_turned(rewriter, node, rewriter.graph().add(node.op, inputs, node.attributes, node.name));
    return true;
  }

  /// An operand that is the same for all channels, as one of work on what is turned.
  static std::optional<ValueId> shared(GraphRewriter& rewriter, ValueId id, const Dims& whole) {
    const Dims dims = rewriter.source().type(id).dims();
    const ValueId now = rewriter.mapped(id);
    if (product(dims, 0, dims.size()) == 1 && dims.size() <= whole.size()) return now;
    if (dims.size() != whole.size() || dims[1] != 1) return std::nullopt;
    return add_reshape(rewriter.graph(), now, with_channels_behind(dims));
  }

  /// What lies ahead of the transpose that a value now is, if it is one of this pass.
  std::optional<ValueId> turned(ValueId id) const {
    const auto found = turned_.find(id);
    return found == turned_.end() ? std::nullopt : std::optional(found->second);
  }

  void set_turned(GraphRewriter& rewriter, const Node& node, ValueId inner) {
    Graph& graph = rewriter.graph();
    turned_.emplace(node.outputs[0], inner);
    const std::size_t rank = graph.type(inner).dims().size();
    const ValueId channels =
        add_slice_along(graph, inner, rank - 1, 0, rewriter.source().type(node.outputs[0]).dims()[1]);
    rewriter.set(node.outputs[0], add_transpose(graph, channels, ahead(rank)));
  }

  std::map<ValueId, ValueId> rows_;    ///< of values of the result
  std::map<ValueId, ValueId> turned_;  ///< of values of the source: what is transposed to make them
};

}  // namespace

Graph turn_gathers(const Graph& graph) {
  GatherTurner turner;
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return turner.rewrite(rewriter, node); });
}

}  // namespace sylvite
