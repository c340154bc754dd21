// What is computed of an element of a small constant is an element of another constant:
//   i = ...; a = gather(table, i); y = where(a > 1, log(a), 0)   ->   y = gather(where(table > 1, log(table), 0), i)
// scikit-learn's isolation forests compute the length of a path by some twenty operations from the leaf that each tree gives.

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "frontend/ops/op_table.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_table_elements = 1 << 16;  ///< of a table
constexpr std::int64_t most_work = 1 << 26;            ///< elements of all tables of a graph

/// A value that is table[index], in the order of its elements.
struct Lookup {
  Tensor table;
  ValueId index = no_value;
  bool is_computed = false;  ///< by more than one gather
};

class Lookups {
 public:
  explicit Lookups(const Graph& graph) : graph_(graph), found_(graph.values().size()) {
    for (const Node& node : graph.nodes()) {
      if (node.outputs.size() != 1 || !graph.type(node.outputs[0]).is_known()) continue;
      if (work_ < most_work) found_[node.outputs[0]] = lookup_of(node);
    }
  }

  /// The values that are worth looking up: where that takes no more gathers than there were.
  [[nodiscard]] IdMap<bool> wanted() const {
    std::map<ValueId, std::vector<ValueId>> read;
    std::map<ValueId, std::size_t> sources;
    const IdMap<bool> is_read = read_by_others();
    for (const Node& node : graph_.nodes()) {
      if (node.outputs.size() != 1 || !found_[node.outputs[0]]) continue;
      const Lookup& lookup = *found_[node.outputs[0]];
      if (!lookup.is_computed) ++sources[lookup.index];
      if (is_read[node.outputs[0]]) read[lookup.index].push_back(node.outputs[0]);
    }
    IdMap<bool> result(graph_.values().size(), false);
    for (const auto& [index, values] : read) {
      if (values.size() > sources[index]) continue;
      for (const ValueId value : values) result[value] = found_[value]->is_computed;
    }
    return result;
  }

  [[nodiscard]] const Lookup& at(ValueId id) const { return *found_[id]; }

 private:
  [[nodiscard]] std::int64_t size_of(ValueId id) const { return graph_.type(id).element_count(); }

  /// Is a value read by an output, or by a node that is none of these?
  [[nodiscard]] IdMap<bool> read_by_others() const {
    IdMap<bool> result(graph_.values().size(), false);
    for (const ValueId id : graph_.outputs) result[id] = true;
    const IdMap<bool> live = live_nodes(graph_);
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (!live[static_cast<NodeId>(i)]) continue;
      const bool is_one = node.outputs.size() == 1 && found_[node.outputs[0]];
      for (const ValueId input : node.inputs)
        if (input != no_value &&
            !(is_one && found_[input] && found_[input]->index == found_[node.outputs[0]]->index))
          result[input] = true;
    }
    return result;
  }

  [[nodiscard]] std::optional<Lookup> lookup_of(const Node& node) {
    if (node.op == Op::gather) return gathered(node);
    return has_trait(node.op, OpTrait::pointwise) ? computed(node) : moved(node);
  }

  [[nodiscard]] std::optional<Lookup> gathered(const Node& node) {
    const Value& data = graph_.value(node.inputs[0]);
    if (!data.constant || data.type.rank() != 1 || node.attributes.integer("axis") != 0) return std::nullopt;
    const std::int64_t size = data.constant->size();
    if (size == 0 || size > most_table_elements || graph_.is_constant(node.inputs[1])) return std::nullopt;
    const std::optional<Lookup>& place = found_[node.inputs[1]];
    if (!place) return Lookup{*data.constant, node.inputs[1]};
    for (std::int64_t i = 0; i < place->table.size(); ++i)
      if (place->table.as_int64(i) < -size || place->table.as_int64(i) >= size)
        return Lookup{*data.constant, node.inputs[1]};
    return evaluated(node, {&*data.constant, &place->table}, *place);
  }

  /// The same elements in another shape, as a sum of one is.
  [[nodiscard]] std::optional<Lookup> moved(const Node& node) const {
    constexpr Op keeping[] = {Op::reshape, Op::reduce_sum, Op::reduce_max, Op::reduce_min, Op::reduce_prod};
    if (std::ranges::find(keeping, node.op) == std::end(keeping)) return std::nullopt;
    const std::optional<Lookup>& source = found_[node.inputs[0]];
    const bool is_same = source && size_of(node.inputs[0]) == size_of(node.outputs[0]) &&
                         source->table.dtype() == graph_.type(node.outputs[0]).dtype;
    return is_same ? std::optional(Lookup{source->table, source->index, true}) : std::nullopt;
  }

  /// Of elements of one index, and of constants of one element.
  [[nodiscard]] std::optional<Lookup> computed(const Node& node) {
    const Lookup* first = nullptr;
    std::vector<const Tensor*> inputs;
    std::vector<Tensor> scalars;
    scalars.reserve(node.inputs.size());
    for (const ValueId input : node.inputs) {
      if (input == no_value) return std::nullopt;
      if (const Value& value = graph_.value(input); value.constant) {
        if (value.constant->size() != 1) return std::nullopt;
        scalars.push_back(value.constant->reshaped({1}));
        inputs.push_back(&scalars.back());
        continue;
      }
      const std::optional<Lookup>& lookup = found_[input];
      if (!lookup || size_of(input) != size_of(node.outputs[0])) return std::nullopt;
      if (first != nullptr && lookup->index != first->index) return std::nullopt;
      if (first == nullptr) first = &*lookup;
      inputs.push_back(&lookup->table);
    }
    if (first == nullptr) return std::nullopt;
    return evaluated(node, inputs, *first);
  }

  [[nodiscard]] Lookup evaluated(const Node& node, const std::vector<const Tensor*>& inputs,
                                 const Lookup& from) {
    const TensorType type = make_type(graph_.type(node.outputs[0]).dtype, Dims{from.table.size()});
    work_ += from.table.size();
    return {evaluate_node(node.op, inputs, node.attributes, std::vector<TensorType>{type}).at(0), from.index,
            true};
  }

  const Graph& graph_;
  IdMap<std::optional<Lookup>> found_;
  std::int64_t work_ = 0;
};

}  // namespace

Graph fold_lookups(const Graph& graph) {
  const Lookups lookups(graph);
  const IdMap<bool> wanted = lookups.wanted();
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    if (node.outputs.size() != 1 || !wanted[node.outputs[0]]) return false;
    const Lookup& lookup = lookups.at(node.outputs[0]);
    Graph& now = rewriter.graph();
    ValueId value = now.add(Op::gather, {now.add_constant(lookup.table), rewriter.mapped(lookup.index)},
                            {{"axis", std::int64_t{0}}});
    const Dims dims = graph.type(node.outputs[0]).dims();
    if (now.type(value).dims() != dims) value = now.add(Op::reshape, {value}, {{"shape", dims}});
    rewriter.set(node.outputs[0], value);
    return true;
  });
}

}  // namespace sylvite
