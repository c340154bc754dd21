// Before: y = attention(q, k, v)                                      heads 36 wide
// After:  y = slice(attention(pad(q), pad(k), pad(v)) {scale = 1/6})  40 wide
// Deep heads, which no template takes, get them for the products that divide_attention makes of them.

#include <algorithm>

#include "base/rounding.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/attention_scale.h"
#include "lowering/passes/attention_forms.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

constexpr std::int64_t unit = 8;

ValueId with_zeros(Graph& graph, ValueId id) {
  Dims dims = graph.type(id).dims();
  dims.back() = round_up(dims.back(), unit);
  return add_zeros_behind(graph, id, dims);
}

/// The attention over wide heads, with zeros behind each; its results are as wide as the values.
ValueId add_wide(Graph& graph, const Node& node, std::vector<ValueId> inputs) {
  Attributes attributes = node.attributes;
  attributes.set("scale", attention_scale(attributes, graph.type(inputs[0]).dims().back()));
  for (std::size_t i = 0; i < 3; ++i) inputs[i] = with_zeros(graph, inputs[i]);
  return graph.add(Op::attention, std::move(inputs), std::move(attributes), node.name);
}

bool is_better_wide(const Graph& graph, const Node& node, const LoweringOptions& options) {
  const bool is_wide = std::all_of(node.inputs.begin(), node.inputs.begin() + 3,
                                   [&](ValueId id) { return graph.type(id).dims().back() % unit == 0; });
  if (is_wide || graph.type(node.outputs[0]).element_count() == 0 ||
      attention_has_template(graph, node, options))
    return false;
  Graph wide;
  std::vector<ValueId> inputs;
  inputs.reserve(node.inputs.size());
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    inputs.push_back(node.inputs[i] == no_value
                         ? no_value
                         : wide.add_input("x" + std::to_string(i), graph.type(node.inputs[i])));
  (void)add_wide(wide, node, inputs);
  const Node& attention = wide.nodes().back();
  return attention_has_template(wide, attention, options) ||
         (!attention_divides(graph, node, options) && attention_divides(wide, attention, options));
}

}  // namespace

Graph widen_attention(const Graph& graph, const LoweringOptions& options) {
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    if (node.op != Op::attention || !is_better_wide(graph, node, options)) return false;
    const Dims dims = graph.type(node.outputs[0]).dims();
    const ValueId wide = add_wide(rewriter.graph(), node, rewriter.mapped(node.inputs));
    rewriter.set(node.outputs[0],
                 add_slice(rewriter.graph(), wide, Dims(dims.size(), 0), dims, Dims(dims.size(), 1)));
    return true;
  });
}

}  // namespace sylvite
