#include "frontend/graph/copy.h"

#include <utility>

#include "base/error.h"

namespace sylvite {
namespace {

/// Does an output need every node and every constant?
bool is_all_needed(const Graph& graph, const IdMap<bool>& is_live) {
  for (std::size_t i = 0; i < graph.nodes().size(); ++i)
    if (!is_live[static_cast<NodeId>(i)]) return false;
  IdMap<bool> is_read(graph.values().size(), false);
  const auto mark = [&](const std::vector<ValueId>& ids) {
    for (const ValueId id : ids)
      if (id != no_value) is_read[id] = true;
  };
  mark(graph.outputs);
  for (const Node& node : graph.nodes()) mark(node.inputs);
  for (std::size_t i = 0; i < graph.values().size(); ++i)
    if (graph.values()[i].constant && !is_read[static_cast<ValueId>(i)]) return false;
  return true;
}

}  // namespace

GraphCopier::GraphCopier(const Graph& source, Names names) : source_(source), names_(names) {
  graph_.name = source.name;
  graph_.symbols = source.symbols;
}

GraphCopier::GraphCopier(const Graph& source, SymbolValues binding)
    : source_(source), names_(Names::kept), binding_(std::move(binding)) {
  graph_.name = source.name;
}

TensorType GraphCopier::type_of(ValueId old) const {
  TensorType type = source_.type(old);
  if (binding_)
    for (Extent& extent : type.shape) extent = extent.at(*binding_);
  return type;
}

std::string GraphCopier::name_of(ValueId old, const char* prefix, std::size_t& count) const {
  return names_ == Names::kept ? source_.value(old).name : prefix + std::to_string(count++);
}

ValueId GraphCopier::add_input(ValueId old) {
  settle();
  return map_[old] = graph_.add_input(name_of(old, "in", inputs_), type_of(old));
}

void GraphCopier::add_inputs() {
  for (const ValueId input : source_.inputs) add_input(input);
  graph_.states = source_.states;
  graph_.overwrites = source_.overwrites;
}

void GraphCopier::copy_left() {
  for (const Node* node : std::exchange(left_, {})) copy(*node);
}

ValueId GraphCopier::mapped(ValueId old) {
  if (old == no_value) return no_value;
  settle();
  if (const auto found = map_.find(old); found != map_.end()) return found->second;
  const Value& value = source_.value(old);
  if (!value.constant) throw InternalError("value '{}' is read before it is copied", value.name);
  const ValueId now = graph_.add_constant(*value.constant, name_of(old, "c", constants_));
  graph_.value(now).type = value.type;
  return map_[old] = now;
}

std::vector<ValueId> GraphCopier::mapped(const std::vector<ValueId>& old) {
  std::vector<ValueId> result;
  result.reserve(old.size());
  for (const ValueId id : old) result.push_back(mapped(id));
  return result;
}

void GraphCopier::copy(const Node& old) {
  settle();
  const std::vector<ValueId> outputs = add_copy(old, mapped(old.inputs));
  for (std::size_t i = 0; i < outputs.size(); ++i) set(old.outputs[i], outputs[i]);
}

std::vector<ValueId> GraphCopier::add_copy(const Node& old, std::vector<ValueId> inputs) {
  settle();
  Node node{old.op, std::move(inputs), {}, old.attributes, names_ == Names::kept ? old.name : ""};
  if (binding_) node.attributes = old.attributes.at(*binding_);
  std::vector<Value> outputs;
  outputs.reserve(old.outputs.size());
  // Extents are constants once symbols have values: all else has the same names before and after.
  const bool is_constant = old.op == Op::extents;
  for (const ValueId id : old.outputs) {
    std::string name = is_constant ? name_of(id, "c", constants_) : name_of(id, "v", values_);
    outputs.push_back({std::move(name), type_of(id), std::nullopt, no_node});
  }
  return graph_.add_known_node(std::move(node), std::move(outputs));
}

Graph GraphCopier::finish() {
  return finish(mapped(source_.outputs));
}

Graph GraphCopier::finish(std::vector<ValueId> outputs) {
  settle();
  for (std::size_t i = 0; i < source_.outputs.size(); ++i) {
    const TensorType wanted = type_of(source_.outputs[i]);
    const TensorType& type = graph_.type(outputs.at(i));
    if (type.shape != wanted.shape || type.dtype != wanted.dtype) {
      throw InternalError("a copy changed output '{}' from {} to {}", source_.output_name(i),
                          wanted.to_string(), type.to_string());
    }
    if (names_ == Names::kept) graph_.output_names.push_back(source_.output_name(i));
  }
  graph_.outputs = std::move(outputs);
  return std::move(graph_);
}

Graph canonical(const Graph& graph) {
  GraphCopier copier(graph, Names::canonical);
  copier.add_inputs();
  for (const Node& node : graph.nodes()) copier.copy(node);
  return copier.finish();
}

IdMap<bool> live_nodes(const Graph& graph) {
  IdMap<bool> is_live(graph.nodes().size(), false);
  const auto mark = [&](const std::vector<ValueId>& ids) {
    for (const ValueId id : ids)
      if (id != no_value && graph.value(id).producer != no_node) is_live[graph.value(id).producer] = true;
  };
  mark(graph.outputs);
  for (auto id = static_cast<NodeId>(graph.nodes().size()); id-- > 0;)
    if (is_live[id]) mark(graph.node(id).inputs);
  return is_live;
}

Graph without_dead_nodes(Graph graph) {
  const IdMap<bool> is_live = live_nodes(graph);
  if (is_all_needed(graph, is_live)) return graph;
  GraphCopier copier(graph);
  copier.add_inputs();
  for (std::size_t i = 0; i < graph.nodes().size(); ++i)
    if (is_live[static_cast<NodeId>(i)]) copier.copy(graph.nodes()[i]);
  return copier.finish();
}

}  // namespace sylvite
