// Before: y = max_pool(x, window [5, 5])
// After:  y = max_pool(max_pool(x, window [5, 1]), window [1, 5])
// The largest of a window is the largest of its lines' largest: 10 elements are compared instead of 25. Windows that move by
// steps lose by it, for the first pool makes lines that the second one leaves out; but where windows over three dims overlap the
// first dim is pooled alone, for what is left is pooled in vectors. So are means of 32 and 64 bits, whose counts are products of
// the dims' counts.

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// The attributes of the pool along the axes [first, end) alone.
Attributes along(const Attributes& whole, std::size_t first, std::size_t end) {
  const Dims kernel = whole.integers("kernel"), pads = whole.integers("pads"),
             dilations = whole.integers("dilations"), strides = whole.integers("strides");
  const std::size_t rank = kernel.size();
  Dims window(rank, 1), around(2 * rank, 0), steps(rank, 1), moves(rank, 1);
  for (std::size_t axis = first; axis < end; ++axis) {
    window[axis] = kernel[axis];
    steps[axis] = dilations[axis];
    moves[axis] = strides[axis];
    around[axis] = pads[axis];
    around[rank + axis] = pads[rank + axis];
  }
  Attributes result{{"kernel", window}, {"pads", around}, {"dilations", steps}, {"strides", moves}};
  if (whole.has("count_include_pad")) result.set("count_include_pad", whole.integer("count_include_pad"));
  return result;
}

bool is_nothing(const Attributes& pool) {
  const auto all = [](const Dims& dims, std::int64_t number) {
    return std::ranges::all_of(dims, [number](std::int64_t n) { return n == number; });
  };
  return all(pool.integers("kernel"), 1) && all(pool.integers("strides"), 1) && all(pool.integers("pads"), 0);
}

/// Where the dims are cut into pools of their own: the first dim of each, and the number of dims.
std::vector<std::size_t> cuts_of(const Node& node, DType dtype) {
  const Dims kernel = node.attributes.integers("kernel"), strides = node.attributes.integers("strides");
  const auto is_wide = [](std::int64_t extent) { return extent > 1; };
  const std::int64_t wide = std::ranges::count_if(kernel, is_wide);
  const bool steps_by_one = std::ranges::all_of(strides, [](std::int64_t stride) { return stride == 1; });
  const bool is_mean = node.op == Op::avg_pool;
  if (wide < 2 || (is_mean && dtype != DType::f32 && dtype != DType::f64)) return {};
  std::vector<std::size_t> cuts{0};
  if (steps_by_one && !is_mean)
    for (std::size_t axis = 1; axis < kernel.size(); ++axis) cuts.push_back(axis);
  else if (wide > 2 && kernel != strides)
    cuts.push_back(1);
  cuts.push_back(kernel.size());
  return cuts;
}

bool split_window(GraphRewriter& rewriter, const Node& node) {
  if (node.op != Op::max_pool && node.op != Op::avg_pool) return false;
  ValueId y = rewriter.mapped(node.inputs[0]);
  const std::vector<std::size_t> cuts = cuts_of(node, rewriter.graph().type(y).dtype);
  if (cuts.size() < 3) return false;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const Attributes part = along(node.attributes, cuts[i], cuts[i + 1]);
    if (!is_nothing(part)) y = rewriter.graph().add(node.op, {y}, part, node.name);
  }
  rewriter.set(node.outputs[0], y);
  return true;
}

}  // namespace

Graph split_windows(const Graph& graph) {
  return rewrite_nodes(graph, split_window);
}

}  // namespace sylvite
