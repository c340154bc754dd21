// A sum of values with zeros around, each of which has its own run of places along one axis, is these values side by side:
//   pad(a) + pad(b) + pad(c)  ->  concat(a, b, c)
// The gradients of query, key and value that one product makes come as such sums.

#include <algorithm>
#include <optional>
#include <utility>

#include "frontend/graph/rewrite.h"
#include "frontend/passes/padding.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

using Uses = IdMap<std::vector<NodeId>>;

/// A value that lies from `start` to `stop` of the axis, among zeros.
struct Part {
  ValueId value = no_value;
  std::size_t axis = 0;
  std::int64_t start = 0, stop = 0;
};

std::optional<Part> part_of(const Graph& graph, ValueId id) {
  const Node* pad = padding_of(graph, id);
  if (pad == nullptr || !has_zeros(graph, *pad)) return std::nullopt;
  const Dims& low = pad->attributes.integers("low");
  const Dims& high = pad->attributes.integers("high");
  std::optional<Part> part;
  for (std::size_t axis = 0; axis < low.size(); ++axis) {
    if (low[axis] == 0 && high[axis] == 0) continue;
    if (part || low[axis] < 0 || high[axis] < 0) return std::nullopt;
    const std::int64_t extent = graph.type(pad->inputs[0]).dims()[axis];
    part = Part{pad->inputs[0], axis, low[axis], low[axis] + extent};
  }
  return part;
}

/// So many additions make one concat: a longer chain is not looked through again from each of its values.
constexpr int most_additions = 64;

/// What the additions that end in `id` add, as long as nothing else reads what is between; false where that is no part, or
/// `additions` were not enough.
bool collect_parts(const Graph& graph, const Uses& uses, ValueId id, std::vector<Part>& parts,
                   int& additions) {
  const Node* sum = producer_if(graph, id, Op::add);
  if (sum != nullptr && (parts.empty() || uses[id].size() == 1)) {
    if (additions-- == 0) return false;
    return std::all_of(sum->inputs.begin(), sum->inputs.end(), [&](ValueId input) {
      return graph.type(input).dims() == graph.type(id).dims() &&
             collect_parts(graph, uses, input, parts, additions);
    });
  }
  const std::optional<Part> part = part_of(graph, id);
  if (!part) return false;
  parts.push_back(*part);
  return true;
}

/// In order, when each begins where the one before ends.
bool are_side_by_side(std::vector<Part>& parts) {
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.start < b.start; });
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (parts[i].axis != parts[0].axis || parts[i].start != parts[i - 1].stop) return false;
  return true;
}

bool join_parts(GraphRewriter& rewriter, const Uses& uses, const Node& node) {
  if (node.op != Op::add) return false;
  const Graph& source = rewriter.source();
  std::vector<Part> parts;
  int additions = most_additions;
  if (!collect_parts(source, uses, node.outputs[0], parts, additions) || !are_side_by_side(parts))
    return false;
  const Dims dims = source.type(node.outputs[0]).dims();
  const std::size_t axis = parts[0].axis;
  std::vector<ValueId> values;
  values.reserve(parts.size());
  for (const Part& part : parts) values.push_back(rewriter.mapped(part.value));
  Dims low(dims.size(), 0), high(dims.size(), 0);
  low[axis] = parts.front().start;
  high[axis] = dims[axis] - parts.back().stop;
  Attributes joins{{"axis", static_cast<std::int64_t>(axis)}};
  if (low[axis] == 0 && high[axis] == 0) {
    rewriter.replace(node, Op::concat, std::move(values), std::move(joins));
    return true;
  }
  const ValueId joined = rewriter.graph().add(Op::concat, std::move(values), std::move(joins));
  rewriter.replace(node, Op::pad, {joined}, {{"low", low}, {"high", high}});
  return true;
}

}  // namespace

Graph join_padded(const Graph& graph) {
  const Uses uses = graph.uses();
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return join_parts(rewriter, uses, node); });
}

}  // namespace sylvite
