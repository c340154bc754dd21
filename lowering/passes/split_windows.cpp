// Before: y = max_pool(x, window [5, 5])
// After:  y = max_pool(max_pool(x, window [5, 1]), window [1, 5])
// The largest of a window is the largest of its lines' largest: 10 elements are compared instead of 25. With steps of 1 alone,
// for with larger ones the first pool makes lines that the second one leaves out.

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// The attributes of the pool along `axis` alone.
Attributes along(const Attributes& whole, std::size_t axis) {
  const Dims kernel = whole.integers("kernel"), pads = whole.integers("pads"),
             dilations = whole.integers("dilations");
  const std::size_t rank = kernel.size();
  Dims window(rank, 1), around(2 * rank, 0), steps(rank, 1);
  window[axis] = kernel[axis];
  steps[axis] = dilations[axis];
  around[axis] = pads[axis];
  around[rank + axis] = pads[rank + axis];
  return {{"kernel", window}, {"pads", around}, {"dilations", steps}, {"strides", whole.integers("strides")}};
}

bool split(GraphRewriter& rewriter, const Node& node) {
  if (node.op != Op::max_pool) return false;
  const Dims kernel = node.attributes.integers("kernel");
  const Dims strides = node.attributes.integers("strides");
  const bool steps_by_one = std::ranges::all_of(strides, [](std::int64_t stride) { return stride == 1; });
  if (!steps_by_one || std::ranges::count_if(kernel, [](std::int64_t extent) { return extent > 1; }) < 2)
    return false;
  ValueId y = rewriter.mapped(node.inputs[0]);
  const Dims pads = node.attributes.integers("pads");
  for (std::size_t axis = 0; axis < kernel.size(); ++axis) {
    const bool is_nothing = kernel[axis] == 1 && pads[axis] == 0 && pads[kernel.size() + axis] == 0;
    if (!is_nothing) y = rewriter.graph().add(Op::max_pool, {y}, along(node.attributes, axis), node.name);
  }
  rewriter.set(node.outputs[0], y);
  return true;
}

}  // namespace

Graph split_windows(const Graph& graph) {
  return rewrite_nodes(graph, split);
}

}  // namespace sylvite
