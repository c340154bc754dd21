// Before: y = work(transpose(reshape(conv(x))))
// After:  y = transpose(reshape(work(conv(x)))), where the convolution's kernel does the work. So does that of a norm or a matmul.
// The same for what is made of such images where their channels lie innermost: the views may then cancel.
//
// Before: y = add(transpose(matmul(a, b)), c)     products of heads, turned so that rows of all heads are one
// After:  y = transpose(add(matmul(a, b), transpose(c)))     where the product's kernel, on a device with templates, reads c as it lies

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/column_work.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// The operand of pointwise work that has no other but numbers, or no_value.
ValueId only_operand(const Graph& graph, const Node& node) {
  if (!has_trait(node.op, OpTrait::pointwise) || node.outputs.size() != 1) return no_value;
  ValueId found = no_value;
  for (const ValueId input : node.inputs) {
    const bool is_number = input != no_value && graph.is_constant(input) && graph.type(input).shape.empty();
    if (is_number) continue;
    if (input == no_value || found != no_value) return no_value;
    found = input;
  }
  return found;
}

class Lifter {
 public:
  Lifter(const Graph& graph, const LoweringOptions& options)
      : graph_(graph),
        uses_(graph.uses()),
        images_(graph.values().size(), false),
        has_templates_(options.refuse_template != nullptr) {
    if (options.image_layout == ImageLayout::channels_last) images_ = innermost_images(graph, options.tf32);
  }

  bool rewrite(GraphRewriter& rewriter, const Node& node) const {
    if (has_templates_ && lift_beside(rewriter, node)) return true;
    const ValueId operand = only_operand(graph_, node);
    if (operand == no_value) return false;
    std::vector<const Node*> views;
    const ValueId start = start_of(operand, views);
    if (views.empty() || !is_own(start) || !takes_work(start)) return false;
    std::vector<ValueId> inputs = rewriter.mapped(node.inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (node.inputs[i] == operand) inputs[i] = rewriter.mapped(start);
    ValueId made = rewriter.graph().add(node.op, inputs, node.attributes, node.name);
    for (auto view = views.rbegin(); view != views.rend(); ++view)
      made = rewriter.graph().add((*view)->op, {made}, (*view)->attributes, (*view)->name);
    rewriter.set(node.outputs[0], made);
    return true;
  }

 private:
  /// Work on a product that is transposed with its rows in place, and on another value of its size.
  bool lift_beside(GraphRewriter& rewriter, const Node& node) const {
    if (node.inputs.size() != 2 || node.outputs.size() != 1 || !has_trait(node.op, OpTrait::pointwise))
      return false;
    return either_order(node, [&](ValueId product, ValueId other) {
      const Node* turn = product == no_value ? nullptr : producer_if(graph_, product, Op::transpose);
      if (turn == nullptr || other == no_value || other == product || !is_own(product) ||
          !is_own(turn->inputs[0]) || producer_if(graph_, turn->inputs[0], Op::matmul) == nullptr ||
          graph_.type(other).shape != graph_.type(product).shape)
        return false;
      const Dims perm = turn->attributes.integers("perm");
      if (perm.back() + 1 != static_cast<std::int64_t>(perm.size())) return false;
      Graph& graph = rewriter.graph();
      std::vector<ValueId> inputs = {rewriter.mapped(turn->inputs[0]),
                                     add_transpose(graph, rewriter.mapped(other), inverse_order(perm))};
      if (node.inputs[0] != product) std::swap(inputs[0], inputs[1]);
      const ValueId made = graph.add(node.op, inputs, node.attributes, node.name);
      rewriter.set(node.outputs[0], add_transpose(graph, made, perm));
      return true;
    });
  }

  /// Nothing but the next node reads it.
  [[nodiscard]] bool is_own(ValueId id) const {
    return uses_[id].size() == 1 && std::ranges::find(graph_.outputs, id) == graph_.outputs.end();
  }

  /// Is it an image, or of a kernel that does work on its elements, too?
  [[nodiscard]] bool takes_work(ValueId id) const {
    if (images_[id]) return true;
    if (graph_.value(id).producer == no_node) return false;
    const Node& producer = graph_.node(graph_.value(id).producer);
    if (producer.op == Op::add)  // of a bias
      for (const ValueId product : producer.inputs)
        if (is_own(product) && works_by_columns(graph_, producer, product) &&
            producer_if(graph_, product, Op::matmul) != nullptr)
          return true;
    return producer.op == Op::conv || producer.op == Op::matmul || has_trait(producer.op, OpTrait::row_norm);
  }

  /// What the views of a value start from; `views` are they, the last first.
  ValueId start_of(ValueId id, std::vector<const Node*>& views) const {
    while (is_own(id)) {
      const Node* view = producer_if(graph_, id, Op::reshape);
      if (view == nullptr) view = producer_if(graph_, id, Op::transpose);
      if (view == nullptr) break;
      views.push_back(view);
      id = view->inputs[0];
    }
    return id;
  }

  const Graph& graph_;
  IdMap<std::vector<NodeId>> uses_;
  IdMap<bool> images_;  ///< may lie with channels innermost
  bool has_templates_;
};

}  // namespace

Graph work_ahead_of_views(const Graph& graph, const LoweringOptions& options) {
  const Lifter lifter(graph, options);
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return lifter.rewrite(rewriter, node); });
}

}  // namespace sylvite
