// Before: y = transpose(reshape(conv(x), [images, channels, pixels]), [0,2,1])
// After:  y = reshape(transpose(conv(x), [0,2,3,1]), [images, pixels, channels])
// Of an image that a convolution makes with its channels innermost, the rows of pixels are there without a move. So are heads of
// channels, and folds of channels fold rows, several of one image the same ones, with work on their results by numbers; folds of
// what is transposed are of what lies there. On the way back:
// Before: y = conv(reshape(transpose(x, [0,1,3,2]), [images, channels, lines, columns]))   of x [images, heads, pixels, depth]
// After:  y = conv(transpose(reshape(transpose(x, [0,2,1,3]), [images, lines, columns, channels]), [0,3,1,2]))

#include <algorithm>
#include <map>
#include <set>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "frontend/values/strided.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

bool is_fold(Op op) {
  return op == Op::reduce_sum || op == Op::reduce_max || op == Op::reduce_min;
}

bool is_in_order(const Dims& perm) {
  return std::ranges::is_sorted(perm);
}

constexpr std::size_t most_repeated_work = 4;  ///< operations that a fold does itself

/// The operand of simple pointwise work with constants of one element, or no_value.
ValueId worked_on(const Graph& graph, ValueId id) {
  const NodeId producer = graph.value(id).producer;
  const ValueId found = producer == no_node ? no_value : operand_beside_numbers(graph, graph.node(producer));
  return found != no_value && graph.type(found).shape == graph.type(id).shape ? found : no_value;
}

class Turner {
 public:
  Turner(const Graph& graph, bool tf32)
      : graph_(graph),
        tf32_(tf32),
        images_(innermost_images(graph, tf32)),
        feeds_(read_by_convolutions(graph)),
        made_of_images_(graph.values().size(), false),
        readers_(graph.values().size(), 0) {
    for (const Node& node : graph.nodes()) {
      for (const ValueId id : node.inputs)
        if (id != no_value) ++readers_[id];
      if (node.outputs.size() == 1) made_of_images_[node.outputs[0]] = is_made_of_images(node);
    }
    for (const ValueId id : graph.outputs) ++readers_[id];
  }

  bool rewrite(GraphRewriter& rewriter, const Node& node) {
    if (node.op == Op::reshape) return leave(rewriter, node) || come(rewriter, node);
    if (node.op == Op::slice) return cut(rewriter, node) || pick(rewriter, node);
    if (is_fold(node.op)) return fold(rewriter, node) || fold_ahead(rewriter, node);
    if (node.op == Op::transpose) return meet(rewriter, node);
    return has_trait(node.op, OpTrait::pointwise) && follow(rewriter, node);
  }

 private:
  /// A reshape of an image becomes one of its rows of channels, in the old order.
  bool leave(GraphRewriter& rewriter, const Node& node) const {
    if (!images_[node.inputs[0]]) return false;
    const Dims image = graph_.type(node.inputs[0]).dims(), shape = graph_.type(node.outputs[0]).dims();
    const std::optional<ReshapedOrder> ahead =
        reshape_ahead(permuted(image, channels_behind(image.size())), channels_ahead(image.size()), shape);
    if (!ahead || is_in_order(ahead->perm)) return false;
    Graph& graph = rewriter.graph();
    const ValueId rows = graph.add(Op::transpose, {rewriter.mapped(node.inputs[0])},
                                   {{"perm", channels_behind(image.size())}});
    const ValueId cut = graph.add(Op::reshape, {rows}, {{"shape", ahead->dims}});
    rewriter.set(node.outputs[0], graph.add(Op::transpose, {cut}, {{"perm", ahead->perm}}, node.name));
    return true;
  }

  /// Of images, parts of them and work on these, whose numbers may be wider.
  [[nodiscard]] bool is_made_of_images(const Node& node) const {
    if (images_[node.outputs[0]]) return true;
    if (node.op == Op::slice) return made_of_images_[node.inputs[0]];
    return is_work_on_each(node) && std::ranges::any_of(node.inputs, [&](ValueId id) {
             return graph_.type(id).dims() == graph_.type(node.outputs[0]).dims() && made_of_images_[id];
           });
  }

  /// Folds of channels are of rows.
  bool fold(GraphRewriter& rewriter, const Node& node) {
    if (node.attributes.integers("axes") != Dims{1} || !made_of_images_[node.inputs[0]]) return false;
    const std::size_t rank = graph_.type(node.inputs[0]).dims().size();
    Graph& graph = rewriter.graph();
    const ValueId rows = rows_of(rewriter, node.inputs[0]);
    Attributes attributes = node.attributes;
    attributes.set("axes", Dims{static_cast<std::int64_t>(rank) - 1});
    const ValueId folded = graph.add(node.op, {rows}, attributes, node.name);
    const bool keeps = node.attributes.integer("keepdims") != 0;
    rewriter.set(node.outputs[0], keeps ? add_transpose(graph, folded, channels_ahead(rank)) : folded);
    folded_.insert(node.outputs[0]);
    return true;
  }

  /// Work with numbers on what rows were folded to is done ahead of the view, where it joins the fold.
  bool follow(GraphRewriter& rewriter, const Node& node) {
    if (node.outputs.size() != 1) return false;
    const ValueId before = worked_on(graph_, node.outputs[0]);
    if (before == no_value || readers_[before] != 1 || !folded_.contains(before)) return false;
    Graph& graph = rewriter.graph();
    const Node* const view = producer_if(graph, rewriter.mapped(before), Op::reshape);
    if (view == nullptr) return false;
    const ValueId source = view->inputs[0];
    std::vector<ValueId> inputs;
    inputs.reserve(node.inputs.size());
    for (const ValueId id : node.inputs) inputs.push_back(id == before ? source : rewriter.mapped(id));
    const ValueId worked = graph.add(node.op, inputs, node.attributes, node.name);
    rewriter.set(node.outputs[0], add_reshape(graph, worked, graph_.type(node.outputs[0]).dims()));
    folded_.insert(node.outputs[0]);
    return true;
  }

  /// What was turned is folded where it lies, by way of work with numbers on it; the few results are turned.
  static bool fold_ahead(GraphRewriter& rewriter, const Node& node) {
    Graph& graph = rewriter.graph();
    std::vector<Node> work;  // the last first
    ValueId turned = rewriter.mapped(node.inputs[0]);
    for (ValueId next = worked_on(graph, turned); next != no_value && work.size() < most_repeated_work;
         next = worked_on(graph, turned)) {
      work.push_back(graph.node(graph.value(turned).producer));
      turned = next;
    }
    const Node* before = producer_if(graph, turned, Op::transpose);
    if (before == nullptr) return false;
    ValueId source = before->inputs[0];
    const bool is_dense = producer_if(graph, source, Op::reshape) != nullptr;
    if (is_image(graph.type(source)) && !is_dense)
      return false;  // its channels may lie innermost, as they are read
    const Dims perm = before->attributes.integers("perm");
    Dims axes, left;  // of the source
    for (std::size_t d = 0; d < perm.size(); ++d)
      (std::ranges::count(node.attributes.integers("axes"), static_cast<std::int64_t>(d)) != 0 ? axes : left)
          .push_back(perm[d]);
    std::ranges::sort(axes);
    if (axes.empty() || axes.back() - axes.front() + 1 != static_cast<std::int64_t>(axes.size()))
      return false;
    for (auto each = work.rbegin(); each != work.rend(); ++each) {
      for (ValueId& input : each->inputs)
        if (input == turned) input = source;
      turned = each->outputs[0];
      source = graph.add(each->op, each->inputs, each->attributes, each->name);
    }
    Attributes attributes = node.attributes;
    attributes.set("axes", axes);
    const ValueId folded = graph.add(node.op, {source}, attributes, node.name);
    if (node.attributes.integer("keepdims") == 0)
      for (std::int64_t& dim : left)
        dim -= std::ranges::count_if(axes, [&](std::int64_t axis) { return axis < dim; });
    const Dims order = node.attributes.integer("keepdims") != 0 ? perm : left;
    rewriter.set(node.outputs[0], is_in_order(order) ? folded : add_transpose(graph, folded, order));
    return true;
  }

  /// An image with its channels behind; so are operands of work that nothing else reads, which is done where rows are folded.
  ValueId rows_of(GraphRewriter& rewriter, ValueId image) {
    Graph& graph = rewriter.graph();
    const Dims dims = graph_.type(image).dims(), order = channels_behind(dims.size());
    const NodeId producer = graph_.value(image).producer;
    const Node* const node = producer != no_node && readers_[image] == 1 ? &graph_.node(producer) : nullptr;
    if (node != nullptr && node->op == Op::slice) {
      Attributes along = node->attributes;
      for (const char* name : {"starts", "sizes", "steps"})
        along.set(name, permuted(node->attributes.integers(name), order));
      return graph.add(Op::slice, {rows_of(rewriter, node->inputs[0])}, along, node->name);
    }
    if (node == nullptr || !is_work_on_each(*node)) {
      const auto [rows, is_new] = rows_.try_emplace(image, no_value);
      if (is_new) rows->second = add_transpose(graph, rewriter.mapped(image), order);
      return rows->second;
    }
    std::vector<ValueId> inputs;
    inputs.reserve(node->inputs.size());
    for (const ValueId id : node->inputs)
      inputs.push_back(graph_.type(id).dims() == dims ? rows_of(rewriter, id) : rewriter.mapped(id));
    return graph.add(node->op, inputs, node->attributes, node->name);
  }

  /// Work of whole images, and single numbers.
  [[nodiscard]] bool is_work_on_each(const Node& node) const {
    if (!has_trait(node.op, OpTrait::pointwise) || node.outputs.size() != 1) return false;
    return std::ranges::all_of(node.inputs, [&](ValueId id) {
      return id != no_value && (graph_.type(id).dims() == graph_.type(node.outputs[0]).dims() ||
                                graph_.type(id).element_count() == 1);
    });
  }

  /// A transpose that becomes an image is one to rows of channels first.
  bool come(GraphRewriter& rewriter, const Node& node) const {
    const ValueId image = node.outputs[0];
    if (!may_lie_innermost(graph_.type(image), tf32_) || !feeds_[image]) return false;
    Graph& graph = rewriter.graph();
    const Node* transpose = producer_if(graph, rewriter.mapped(node.inputs[0]), Op::transpose);
    if (transpose == nullptr) return false;
    const Dims out = graph_.type(image).dims(), perm = transpose->attributes.integers("perm");
    const ValueId source = transpose->inputs[0];
    const Dims order = rows_order(graph.type(transpose->outputs[0]).dims(), out);
    if (order.empty()) return false;
    const Dims whole = permuted(perm, order);
    const ValueId moved =
        is_in_order(whole) ? source : graph.add(Op::transpose, {source}, {{"perm", whole}}, node.name);
    const ValueId rows =
        graph.add(Op::reshape, {moved}, {{"shape", permuted(out, channels_behind(out.size()))}});
    rewriter.set(image, graph.add(Op::transpose, {rows}, {{"perm", channels_ahead(out.size())}}));
    return true;
  }

  /// A part of what was turned is cut ahead of the transpose.
  static bool cut(GraphRewriter& rewriter, const Node& node) {
    const ValueId input = rewriter.mapped(node.inputs[0]);
    if (producer_if(rewriter.graph(), input, Op::transpose) == nullptr) return false;
    const auto& at = node.attributes;
    rewriter.set(node.outputs[0], add_slice(rewriter.graph(), input, at.integers("starts"),
                                            at.integers("sizes"), at.integers("steps")));
    return true;
  }

  /// Images that lie behind each other, joined by their channels, of which a part is of one: every so many-th of the images.
  bool pick(GraphRewriter& rewriter, const Node& node) const {
    const Node* joined = producer_if(graph_, node.inputs[0], Op::reshape);
    if (joined == nullptr || !images_[joined->inputs[0]]) return false;
    const Dims from = graph_.type(joined->inputs[0]).dims(), to = graph_.type(joined->outputs[0]).dims();
    if (from.size() != to.size() || !std::equal(from.begin() + 2, from.end(), to.begin() + 2)) return false;
    Dims starts = node.attributes.integers("starts"), steps = node.attributes.integers("steps");
    const Dims& sizes = node.attributes.integers("sizes");
    const std::int64_t channels = from[1], number = starts[1] / channels;
    const bool is_of_one = steps[1] == 1 && (starts[1] + sizes[1] - 1) / channels == number;
    if (from[0] == to[0] || from[0] % to[0] != 0 || !is_of_one) return false;
    const std::int64_t images = from[0] / to[0];
    starts[0] = starts[0] * images + number;
    steps[0] *= images;
    starts[1] -= number * channels;
    rewriter.set(node.outputs[0],
                 add_slice(rewriter.graph(), rewriter.mapped(joined->inputs[0]), starts, sizes, steps));
    return true;
  }

  /// Two transposes in a row are one; the first is left of a reshape that was turned.
  static bool meet(GraphRewriter& rewriter, const Node& node) {
    Graph& graph = rewriter.graph();
    const Node* before = producer_if(graph, rewriter.mapped(node.inputs[0]), Op::transpose);
    if (before == nullptr) return false;
    const ValueId source = before->inputs[0];
    const Dims perm = permuted(before->attributes.integers("perm"), node.attributes.integers("perm"));
    if (is_in_order(perm))
      rewriter.set(node.outputs[0], source);
    else
      rewriter.replace(node, Op::transpose, {source}, {{"perm", perm}});
    return true;
  }

  /// The order of dims `from`, which a reshape makes [image, channel, pixels...], in which it would make [image, pixels...,
  /// channel]; empty where it merges channels and others.
  static Dims rows_order(const Dims& from, const Dims& image) {
    Dims channels, others;
    for (const DimGroup& group : dim_groups(from, image)) {
      bool has_channels = false, has_others = false;
      for (std::size_t d = group.to_begin; d < group.to_end; ++d)
        (d == 1 ? has_channels : has_others) |= image[d] != 1;
      if (has_channels && has_others) return {};
      for (std::size_t d = group.from_begin; d < group.from_end; ++d)
        (has_channels ? channels : others).push_back(static_cast<std::int64_t>(d));
    }
    others.insert(others.end(), channels.begin(), channels.end());
    return others;
  }

  const Graph& graph_;
  bool tf32_;
  IdMap<bool> images_;
  IdMap<bool> feeds_;  ///< see read_by_convolutions
  IdMap<bool> made_of_images_;
  IdMap<int> readers_;
  std::set<ValueId> folded_;         ///< channels that became rows, and work with numbers on these
  std::map<ValueId, ValueId> rows_;  ///< of images with several readers, with their channels behind
};

}  // namespace

Graph turn_images(const Graph& graph, bool tf32) {
  Turner turner(graph, tf32);
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return turner.rewrite(rewriter, node); });
}

}  // namespace sylvite
