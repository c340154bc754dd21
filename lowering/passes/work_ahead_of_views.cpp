// Before: y = work(transpose(reshape(conv(x))))
// After:  y = transpose(reshape(work(conv(x)))), where the convolution's kernel does the work. So does that of a norm or a matmul.
// The same for what is made of such images where their channels lie innermost: the views may then cancel.
//
// Before: y = add(transpose(matmul(a, b)), c)     products of heads, turned so that rows of all heads are one
// After:  y = transpose(add(matmul(a, b), transpose(c)))     where the product's kernel, on a device with templates, reads c as it lies
//
// Before: y = relu(sub(reshape(transpose(matmul(a, b))), reshape(transpose(matmul(c, d)))))     the same views of both
// After:  y = reshape(transpose(relu(sub(matmul(a, b), matmul(c, d)))))     which one of the products' kernels does

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

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

  bool rewrite(GraphRewriter& rewriter, const Node& node) {
    if (has_templates_ &&
        (lift_further(rewriter, node) || lift_beside(rewriter, node) || lift_alike(rewriter, node)))
      return true;
    const ValueId operand = only_operand(graph_, node);
    if (operand == no_value) return false;
    Views views;
    const ValueId start = start_of(operand, views);
    if (views.empty() || !is_own(start) || !takes_work(start)) return false;
    std::vector<ValueId> inputs = rewriter.mapped(node.inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (node.inputs[i] == operand) inputs[i] = rewriter.mapped(start);
    set(rewriter, node, std::move(inputs), views);
    return true;
  }

 private:
  using Views = std::vector<const Node*>;  ///< the last first

  /// Work that two values of the same views take ahead of these.
  struct Lifted {
    ValueId made = no_value;  ///< in the new graph
    Views views;
  };

  /// The node's result is views of what its operation makes of `inputs`, which is returned.
  static ValueId set(GraphRewriter& rewriter, const Node& node, std::vector<ValueId> inputs,
                     const Views& views) {
    Graph& graph = rewriter.graph();
    const ValueId made = graph.add(node.op, std::move(inputs), node.attributes, node.name);
    ValueId viewed = made;
    for (auto view = views.rbegin(); view != views.rend(); ++view)
      viewed = graph.add((*view)->op, {viewed}, (*view)->attributes, (*view)->name);
    rewriter.set(node.outputs[0], viewed);
    return made;
  }

  [[nodiscard]] const Node* view_of(ValueId id) const {
    const Node* view = producer_if(graph_, id, Op::reshape);
    return view != nullptr ? view : producer_if(graph_, id, Op::transpose);
  }

  [[nodiscard]] bool is_alike(const Node* view, const Node* other) const {
    return view != nullptr && other != nullptr && view->op == other->op &&
           view->attributes == other->attributes &&
           graph_.type(view->inputs[0]).shape == graph_.type(other->inputs[0]).shape;
  }

  /// Does the transpose leave rows as they are?
  static bool keeps_rows(const Node& transpose) {
    const Dims& perm = transpose.attributes.integers("perm");
    return perm.back() + 1 == static_cast<std::int64_t>(perm.size());
  }

  /// Work on two values that are read through the same views, of which one is a product whose rows stay in place.
  bool lift_alike(GraphRewriter& rewriter, const Node& node) {
    if (node.inputs.size() != 2 || node.outputs.size() != 1 || !has_trait(node.op, OpTrait::pointwise))
      return false;
    Views views;
    ValueId one = node.inputs[0], other = node.inputs[1];
    bool turns = false;
    while (one != no_value && other != no_value && one != other && is_own(one) && is_own(other)) {
      const Node* view = view_of(one);
      if (!is_alike(view, view_of(other)) || (view->op == Op::transpose && !keeps_rows(*view))) break;
      turns = turns || view->op == Op::transpose;
      views.push_back(view);
      one = view->inputs[0];
      other = view_of(other)->inputs[0];
    }
    const auto is_product = [&](ValueId id) { return is_own(id) && !images_[id] && takes_work(id); };
    if (!turns || one == other || !(is_product(one) || is_product(other))) return false;
    lifted_[node.outputs[0]] = {set(rewriter, node, {rewriter.mapped(one), rewriter.mapped(other)}, views),
                                views};
    return true;
  }

  /// Work on numbers and on what was lifted over the same views alone, all readers of which are pointwise.
  bool lift_further(GraphRewriter& rewriter, const Node& node) {
    if (!has_trait(node.op, OpTrait::pointwise) || node.outputs.size() != 1) return false;
    const Views* views = nullptr;
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) {
      const bool is_number = id != no_value && graph_.is_constant(id) && graph_.type(id).shape.empty();
      const auto lifted = lifted_.find(id);
      if (!is_number && (lifted == lifted_.end() || (views != nullptr && lifted->second.views != *views) ||
                         !is_worked_on(id)))
        return false;
      if (!is_number) views = &lifted->second.views;
      inputs.push_back(is_number ? rewriter.mapped(id) : lifted->second.made);
    }
    if (views == nullptr) return false;
    const Views over = *views;
    lifted_[node.outputs[0]] = {set(rewriter, node, std::move(inputs), over), over};
    return true;
  }

  /// Is all that reads it pointwise work?
  [[nodiscard]] bool is_worked_on(ValueId id) const {
    return std::ranges::find(graph_.outputs, id) == graph_.outputs.end() &&
           std::ranges::all_of(uses_[id], [&](NodeId reader) {
             return has_trait(graph_.node(reader).op, OpTrait::pointwise);
           });
  }

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
  ValueId start_of(ValueId id, Views& views) const {
    while (is_own(id)) {
      const Node* view = view_of(id);
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
  std::map<ValueId, Lifted> lifted_;  ///< by value of the old graph
};

}  // namespace

Graph work_ahead_of_views(const Graph& graph, const LoweringOptions& options) {
  Lifter lifter(graph, options);
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return lifter.rewrite(rewriter, node); });
}

}  // namespace sylvite
