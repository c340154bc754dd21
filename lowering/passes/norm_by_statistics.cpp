// Before: m = mean(x), r = rsqrt(mean((x - m)^2) + epsilon), y = layer_norm(x, scale, shift), with rows along the last axis
// After:  y = (x - m) * r * scale + shift;  and rms_norm likewise, without m
// What trains keeps both numbers of each row: one kernel may fold rows for them and work on what it holds then, instead of three
// that read them.

#include <optional>
#include <vector>

#include "frontend/graph/copy.h"
#include "frontend/graph/pattern_mean.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// Of rows of `wide`, all values of the source. Without a mean, `centered` is `wide`.
struct Statistics {
  ValueId wide = no_value, centered = no_value, inverse = no_value;
  double epsilon = 0;
};

/// What `id` is the mean of along the last axis; no_value: another value.
ValueId mean_of(const Graph& graph, ValueId id) {
  const std::optional<Mean> mean = match_mean(graph, id);
  return mean && mean->first_axis == graph.type(mean->of).rank() - 1 ? mean->of : no_value;
}

/// What an inverse deviation is of.
std::optional<Statistics> match_statistics(const Graph& graph, const Node& root) {
  const Node* sum = root.op == Op::rsqrt ? producer_if(graph, root.inputs[0], Op::add) : nullptr;
  if (sum == nullptr) return std::nullopt;
  std::optional<Statistics> found;
  (void)either_order(*sum, [&](ValueId variance, ValueId number) {
    const std::optional<double> epsilon = scalar_constant(graph, number);
    const ValueId squares = mean_of(graph, variance);
    const Node* square = squares == no_value ? nullptr : producer_if(graph, squares, Op::mul);
    if (!epsilon || square == nullptr || square->inputs[0] != square->inputs[1]) return false;
    const ValueId squared = square->inputs[0];
    const Node* centered = producer_if(graph, squared, Op::sub);
    const bool has_mean = centered != nullptr && mean_of(graph, centered->inputs[1]) == centered->inputs[0];
    found = Statistics{has_mean ? centered->inputs[0] : squared, squared, root.outputs[0], *epsilon};
    return true;
  });
  return found;
}

bool are_of(const Graph& graph, const Statistics& statistics, const Node& norm) {
  const Node* cast = producer_if(graph, statistics.wide, Op::cast);
  const bool is_read =
      norm.inputs[0] == statistics.wide || (cast != nullptr && cast->inputs[0] == norm.inputs[0]);
  const bool has_mean = statistics.centered != statistics.wide;
  return is_read && has_mean == (norm.op == Op::layer_norm) &&
         norm.attributes.integer("axis") == graph.type(norm.inputs[0]).rank() - 1 &&
         static_cast<float>(norm.attributes.real("epsilon")) == static_cast<float>(statistics.epsilon);
}

}  // namespace

Graph norm_by_statistics(const Graph& graph) {
  const IdMap<bool> live = live_nodes(graph);
  std::vector<Statistics> all;  // of nodes before
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    if (!live[graph.value(node.outputs[0]).producer]) return false;
    if (const std::optional<Statistics> found = match_statistics(graph, node)) all.push_back(*found);
    if (node.op != Op::layer_norm && node.op != Op::rms_norm) return false;
    if (node.attributes.has("groups")) return false;
    for (const Statistics& statistics : all) {
      if (!are_of(graph, statistics, node)) continue;
      Graph& to = rewriter.graph();
      const auto work = [&](Op op, ValueId a, ValueId b) { return to.add(op, {a, b}); };
      const DType wide = graph.type(statistics.wide).dtype;
      ValueId y = work(Op::mul, rewriter.mapped(statistics.centered), rewriter.mapped(statistics.inverse));
      const auto has = [&](std::size_t i) { return node.inputs.size() > i && node.inputs[i] != no_value; };
      if (has(1)) y = work(Op::mul, y, add_cast(to, rewriter.mapped(node.inputs[1]), wide));
      if (has(2)) y = work(Op::add, y, add_cast(to, rewriter.mapped(node.inputs[2]), wide));
      rewriter.set(node.outputs[0], add_cast(to, y, graph.type(node.outputs[0]).dtype));
      return true;
    }
    return false;
  });
}

}  // namespace sylvite
