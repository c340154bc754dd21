#include "lowering/passes/wide_writes.h"

#include <algorithm>
#include <optional>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/attention_forms.h"

namespace sylvite {
namespace {

/// Which inputs of a node hold what it moves; empty where it does something else.
std::vector<std::size_t> moved_inputs(const Node& node) {
  switch (node.op) {
    case Op::reshape:
    case Op::transpose:
    case Op::slice:
      return {0};
    case Op::where:
      return {1, 2};
    case Op::scatter_elements:
    case Op::scatter_nd:
      return node.inputs.size() == 3 && node.attributes.string("reduction") == "none"
                 ? std::vector<std::size_t>{0, 2}
                 : std::vector<std::size_t>{};
    case Op::concat: {
      std::vector<std::size_t> all(node.inputs.size());
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
      return all;
    }
    default:
      return {};
  }
}

constexpr std::int64_t few_queries = 16;

class WriteWidener {
 public:
  WriteWidener(const Graph& graph, const LoweringOptions& options)
      : graph_(graph),
        options_(options),
        readers_(graph.uses()),
        becomes_wide_(graph.values().size(), false),
        wide_(graph.values().size(), no_value) {}

  /// Marks what lies between the casts of a state, and whether anything does.
  bool mark(const State& state) {
    const ValueId past = graph_.inputs.at(state.input), next = graph_.outputs.at(state.output);
    const Node* narrowing = reader_of(past);
    const Node* widening = producer_if(graph_, next, Op::cast);
    if (narrowing == nullptr || widening == nullptr || graph_.type(past).dtype != graph_.type(next).dtype ||
        !narrows(*narrowing))
      return false;
    const ValueId from = narrowing->outputs[0], to = widening->inputs[0];
    if (from == to || graph_.type(to).dtype != graph_.type(from).dtype) return false;
    std::vector<ValueId> found;
    if (!reaches(to, from, found)) return false;
    becomes_wide_[from] = true;
    for (const ValueId id : found) becomes_wide_[id] = true;
    return true;
  }

  bool rewrite(GraphRewriter& rewriter, const Node& node) {
    if (node.outputs.size() != 1) return false;
    const ValueId out = node.outputs[0];
    Graph& made = rewriter.graph();
    if (node.op == Op::attention) return attend(rewriter, node);
    if (!becomes_wide_[out]) {
      const bool widens = node.op == Op::cast && becomes_wide_[node.inputs[0]] &&
                          graph_.type(out).dtype == made.type(wide_[node.inputs[0]]).dtype;
      if (widens) rewriter.set(out, wide_[node.inputs[0]]);
      return widens;
    }
    if (node.op == Op::cast) {
      wide_[out] = rewriter.mapped(node.inputs[0]);
    } else {
      std::vector<ValueId> inputs = rewriter.mapped(node.inputs);
      for (const std::size_t i : moved_inputs(node))
        inputs[i] =
            becomes_wide_[node.inputs[i]] ? wide_[node.inputs[i]] : add_cast(made, inputs[i], DType::f32);
      wide_[out] = made.add(node.op, inputs, node.attributes, node.name);
    }
    rewriter.set(out, add_cast(made, wide_[out], graph_.type(out).dtype));
    return true;
  }

 private:
  /// The wide form of a value that is made of states, or of a view of such.
  std::optional<ValueId> wide_form(GraphRewriter& rewriter,
                                   ValueId id) {  // NOLINT(misc-no-recursion): a chain
    if (becomes_wide_[id]) return wide_[id];
    const NodeId producer = graph_.value(id).producer;
    if (producer == no_node || !has_trait(graph_.node(producer).op, OpTrait::view)) return std::nullopt;
    const Node& view = graph_.node(producer);
    std::vector<ValueId> inputs = rewriter.mapped(view.inputs);
    const std::optional<ValueId> source = wide_form(rewriter, view.inputs[0]);
    if (!source) return std::nullopt;
    inputs[0] = *source;
    return rewriter.graph().add(view.op, inputs, view.attributes, view.name);
  }

  /// A few queries are attended to in the state's type: that reads what is there, and not the room behind it, which converting would.
  bool attend(GraphRewriter& rewriter, const Node& node) {
    const Dims queries = graph_.type(node.inputs[0]).dims();
    if (queries[queries.size() - 2] > few_queries) return false;
    const std::optional<ValueId> keys = wide_form(rewriter, node.inputs[1]),
                                 values = wide_form(rewriter, node.inputs[2]);
    if (!keys || !values) return false;
    Graph& made = rewriter.graph();
    std::vector<ValueId> inputs = rewriter.mapped(node.inputs);
    inputs[0] = add_cast(made, inputs[0], DType::f32);
    inputs[1] = *keys;
    inputs[2] = *values;
    for (std::size_t i = 3; i < inputs.size(); ++i)
      if (inputs[i] != no_value && is_float(made.type(inputs[i]).dtype))
        inputs[i] = add_cast(made, inputs[i], DType::f32);
    const ValueId wide = made.add(Op::attention, inputs, node.attributes, node.name);
    if (options_.refuse_template != nullptr &&
        !attention_has_template(made, made.node(made.value(wide).producer), options_))
      return false;
    rewriter.set(node.outputs[0], add_cast(made, wide, graph_.type(node.outputs[0]).dtype));
    return true;
  }

  [[nodiscard]] bool narrows(const Node& node) const {
    return node.op == Op::cast && graph_.type(node.inputs[0]).dtype == DType::f32 &&
           is_half(graph_.type(node.outputs[0]).dtype);
  }
  /// The one node that reads the value; nullptr where there are others, or it is a result itself.
  [[nodiscard]] const Node* reader_of(ValueId id) const {
    const bool is_own = readers_[id].size() == 1 && std::ranges::count(graph_.outputs, id) == 0;
    return is_own ? &graph_.node(readers_[id].front()) : nullptr;
  }
  /// Is `id` made of `from` by moving it? All on the way joins `found`.
  bool reaches(ValueId id, ValueId from,
               std::vector<ValueId>& found) const {  // NOLINT(misc-no-recursion): a chain
    if (id == from) return true;
    const NodeId producer = graph_.value(id).producer;
    if (producer == no_node) return false;
    bool any = false;
    const Node& node = graph_.node(producer);
    for (const std::size_t i : moved_inputs(node)) any = reaches(node.inputs[i], from, found) || any;
    if (any) found.push_back(id);
    return any;
  }

  const Graph& graph_;
  const LoweringOptions& options_;
  IdMap<std::vector<NodeId>> readers_;
  IdMap<bool> becomes_wide_;  ///< per source value
  IdMap<ValueId> wide_;       ///< likewise: its wide form in the result
};

}  // namespace

Graph widen_writes(const Graph& graph, const std::vector<State>& pairs, const LoweringOptions& options) {
  WriteWidener widener(graph, options);
  bool any = false;
  for (const State& pair : pairs) any = widener.mark(pair) || any;
  if (!any) return graph;
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return widener.rewrite(rewriter, node); });
}

}  // namespace sylvite
