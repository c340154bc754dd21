// Zeros around an image are the padding of the convolution that reads it, and what is sliced of such zeros needs not be there:
//   conv(pad(x))   ->  conv(x) with wider pads
//   slice(pad(x))  ->  pad(slice(x))
// Exporters write so what pads to "same", to one side (causal), or shifts.

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/passes/padding.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

bool is_convolution(const Graph& graph, const Node& node) {
  return node.op == Op::conv && is_float(graph.type(node.inputs[0]).dtype) &&
         is_float(graph.type(node.inputs[1]).dtype);
}

bool widen_pads(GraphRewriter& rewriter, const Node& node) {
  if (!is_convolution(rewriter.source(), node)) return false;
  const Graph& graph = rewriter.graph();
  std::vector<ValueId> inputs = rewriter.mapped(node.inputs);
  const Node* const pad = padding_of(graph, inputs[0]);
  if (pad == nullptr || !has_zeros(graph, *pad)) return false;
  const Dims &low = pad->attributes.integers("low"), &high = pad->attributes.integers("high");
  if (low[0] != 0 || low[1] != 0 || high[0] != 0 || high[1] != 0) return false;
  Dims pads = node.attributes.integers("pads");
  const std::size_t rank = pads.size() / 2;
  for (std::size_t d = 0; d < rank; ++d) {
    if (low[d + 2] < 0 || high[d + 2] < 0) return false;
    pads[d] += low[d + 2];
    pads[d + rank] += high[d + 2];
  }
  inputs[0] = pad->inputs[0];
  Attributes attributes = node.attributes;
  attributes.set("pads", pads);
  rewriter.replace(node, Op::conv, std::move(inputs), std::move(attributes));
  return true;
}

bool slice_first(GraphRewriter& rewriter, const Node& node) {
  if (node.op != Op::slice) return false;
  Graph& graph = rewriter.graph();
  const Node* const pad = padding_of(graph, rewriter.mapped(node.inputs)[0]);
  const Dims& steps = node.attributes.integers("steps");
  if (pad == nullptr || std::ranges::any_of(steps, [](std::int64_t step) { return step != 1; })) return false;
  const Dims extents = graph.type(pad->inputs[0]).dims();
  Dims starts = node.attributes.integers("starts"), sizes = node.attributes.integers("sizes");
  Dims low = pad->attributes.integers("low"), high = pad->attributes.integers("high");
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const std::int64_t first = starts[d] - low[d], end = first + sizes[d];
    const std::int64_t from = std::max<std::int64_t>(first, 0), to = std::min(end, extents[d]);
    if (from >= to) return false;
    starts[d] = from, sizes[d] = to - from;
    low[d] = from - first, high[d] = end - to;
  }
  std::vector<ValueId> inputs = pad->inputs;
  Attributes attributes = pad->attributes;
  attributes.set("low", low);
  attributes.set("high", high);
  inputs[0] = graph.add(Op::slice, {inputs[0]}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
  rewriter.replace(node, Op::pad, std::move(inputs), std::move(attributes));
  return true;
}

}  // namespace

Graph pad_windows(const Graph& graph) {
  return rewrite_nodes(graph, [](GraphRewriter& rewriter, const Node& node) {
    return slice_first(rewriter, node) || widen_pads(rewriter, node);
  });
}

}  // namespace sylvite
