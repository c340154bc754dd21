// Before: y = reduce_max(mul(concat(a, b, c), s))   along the axis on which each of a, b and c has one place
// After:  y = maximum(maximum(mul(a, s), mul(b, s)), mul(c, s))
//
// What was put side by side only to be folded is never stored, and the fold ends no kernel.

#include <map>
#include <optional>
#include <tuple>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/join_two.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_stacked = 8;
constexpr int most_work = 64;  ///< nodes that a fold becomes
/// Fewer take a CPU as long as a call, and what folds them is often one kernel, which is called again and again.
constexpr std::int64_t least_elements_on_cpu = 16;

/// The places of an axis of values of the new graph, without that axis.
class Places {
 public:
  explicit Places(Graph& graph) : graph_(graph) {}

  /// Nothing where the value is not made of parts of one place each, by pointwise work, or that would be too much. `behind`: dims
  /// behind the axis.
  std::optional<ValueId> at(ValueId id, std::int64_t behind, std::int64_t place) {
    const auto [found, is_new] = known_.try_emplace({id, behind, place}, std::nullopt);
    if (is_new) {
      const std::optional<ValueId> made = make(id, behind, place);
      known_[{id, behind, place}] = made;
      return made;
    }
    return found->second;
  }

  void begin() { work_ = 0; }

 private:
  std::optional<ValueId> make(ValueId id, std::int64_t behind, std::int64_t place) {
    const TensorType type = graph_.type(id);
    if (type.rank() <= behind) return id;
    const auto axis = static_cast<std::size_t>(type.rank() - 1 - behind);
    if (type.dims()[axis] == 1) return without(id, axis);
    const NodeId producer = graph_.value(id).producer;
    if (producer == no_node) return std::nullopt;
    const Node node = graph_.node(producer);
    if (node.op == Op::concat) return part_of(node, axis, place);
    if (!has_trait(node.op, OpTrait::pointwise) || node.outputs.size() != 1 || ++work_ > most_work)
      return std::nullopt;
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) {
      const std::optional<ValueId> part = input == no_value ? no_value : at(input, behind, place);
      if (!part) return std::nullopt;
      inputs.push_back(*part);
    }
    return graph_.add(node.op, inputs, node.attributes, node.name);
  }

  std::optional<ValueId> part_of(const Node& concat, std::size_t axis, std::int64_t place) {
    if (concat.attributes.integer("axis") != static_cast<std::int64_t>(axis)) return std::nullopt;
    for (const ValueId part : concat.inputs)
      if (graph_.type(part).dims()[axis] != 1) return std::nullopt;
    return without(concat.inputs[static_cast<std::size_t>(place)], axis);
  }

  ValueId without(ValueId id, std::size_t axis) {
    Dims dims = graph_.type(id).dims();
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
    return add_reshape(graph_, id, dims);
  }

  Graph& graph_;
  std::map<std::tuple<ValueId, std::int64_t, std::int64_t>, std::optional<ValueId>> known_;
  int work_ = 0;
};

/// Is a concat among what pointwise work makes the value of?
bool is_made_of_parts(const Graph& graph, ValueId id, std::int64_t behind, int depth = 0) {
  constexpr int deepest = 16;
  const TensorType& type = graph.type(id);
  const NodeId producer = graph.value(id).producer;
  if (producer == no_node || depth > deepest || type.rank() <= behind) return false;
  if (type.dims()[static_cast<std::size_t>(type.rank() - 1 - behind)] == 1) return false;
  const Node& node = graph.node(producer);
  if (node.op == Op::concat) return true;
  return has_trait(node.op, OpTrait::pointwise) && std::ranges::any_of(node.inputs, [&](ValueId input) {
           return input != no_value && is_made_of_parts(graph, input, behind, depth + 1);
         });
}

bool unstack(GraphRewriter& rewriter, const Node& node, Places& places, std::int64_t least_elements) {
  const std::optional<Op> join = join_of(node.op);
  if (!join || rewriter.source().type(node.outputs[0]).element_count() < least_elements) return false;
  Graph& graph = rewriter.graph();
  const ValueId folded = rewriter.mapped(node.inputs[0]);
  const TensorType type = graph.type(folded);
  const Dims& axes = node.attributes.integers("axes");
  if (axes.size() != 1 || !type.is_known() || !is_float(type.dtype) || type.element_count() == 0)
    return false;
  const std::int64_t parts = type.dims()[static_cast<std::size_t>(axes[0])];
  const std::int64_t behind = type.rank() - 1 - axes[0];
  if (parts < 2 || parts > most_stacked || !is_made_of_parts(graph, folded, behind)) return false;
  places.begin();
  const std::optional<ValueId> all =
      joined_parts(graph, node, *join, type.dtype, parts,
                   [&](std::int64_t place) { return places.at(folded, behind, place); });
  if (!all) return false;
  const Dims dims = rewriter.source().type(node.outputs[0]).dims();
  rewriter.set(node.outputs[0], add_reshape(graph, *all, dims));
  return true;
}

}  // namespace

Graph unstack_folds(const Graph& graph, const LoweringOptions& options) {
  const std::int64_t least_elements = options.refuse_template ? 1 : least_elements_on_cpu;
  std::optional<Places> places;
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    if (!places) places.emplace(rewriter.graph());
    return unstack(rewriter, node, *places, least_elements);
  });
}

}  // namespace sylvite
