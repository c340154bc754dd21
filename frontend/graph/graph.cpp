#include "sylvite/graph.h"

#include <algorithm>

#include "base/error.h"
#include "frontend/ops/absent_attributes.h"
#include "frontend/ops/infer.h"
#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

void fill_defaults(const OpInfo& info, Attributes& attributes, const std::string& node_name) {
  for (const auto& [name, value] : attributes.items()) {
    const AttributeInfo* row = info.find_attribute(name);
    if (row == nullptr) throw ModelError("{} '{}': no attribute '{}'", info.name, node_name, name);
    if (!is_of_kind(value, row->kind)) {
      throw ModelError("{} '{}': attribute '{}' is of another kind than the op table says", info.name,
                       node_name, name);
    }
  }
  for (const AttributeInfo& attribute : info.attributes) {
    if (attributes.has(attribute.name) || may_be_absent(attribute)) continue;
    if (!attribute.fallback)
      throw ModelError("{} '{}': attribute '{}' is required", info.name, node_name, attribute.name);
    attributes.set(attribute.name, *attribute.fallback);
  }
}

}  // namespace

const std::string& Graph::output_name(std::size_t i) const {
  if (i < output_names.size() && !output_names[i].empty()) return output_names[i];
  return value(outputs.at(i)).name;
}

std::vector<bool> Graph::state_inputs() const {
  std::vector<bool> marks(inputs.size(), false);
  for (const State& state : states) marks.at(state.input) = true;
  return marks;
}

std::vector<bool> Graph::state_outputs() const {
  std::vector<bool> marks(outputs.size(), false);
  for (const State& state : states) marks.at(state.output) = true;
  return marks;
}

std::string Graph::unique_name(const std::string& wanted) const {
  constexpr std::size_t patience = 16;  // small numbers read well, but many clashes must stay cheap
  if (!wanted.empty() && !by_name_.contains(wanted)) return wanted;
  const std::string stem = wanted.empty() ? "v" : wanted + "_";
  std::size_t number = wanted.empty() ? values_.size() : 1;
  std::size_t clashes = 0;
  while (by_name_.contains(stem + std::to_string(number))) {
    number = number == patience ? std::max(number + 1, values_.size()) : number + 1;
    if (++clashes > patience) number += clashes * clashes;  // out of a long run of numbers in a few steps
  }
  return stem + std::to_string(number);
}

ValueId Graph::add_value(Value value) {
  if (value.type.rank() > most_dims) {
    throw UnsupportedError("value '{}' has {} dims; {} are supported", value.name, value.type.rank(),
                           most_dims);
  }
  const auto id = static_cast<ValueId>(values_.size());
  if (value.name.empty() || !by_name_.try_emplace(value.name, id).second) {
    value.name = unique_name(value.name);
    by_name_[value.name] = id;
  }
  values_.push_back(std::move(value));
  return id;
}

void Graph::rename(ValueId id, const std::string& value_name) {
  Value& renamed = value(id);
  if (value_name.empty() || renamed.name == value_name) return;
  by_name_.erase(renamed.name);
  renamed.name = unique_name(value_name);
  by_name_[renamed.name] = id;
}

ValueId Graph::add_input(const std::string& value_name, TensorType type) {
  const ValueId id = add_value({value_name, std::move(type), std::nullopt, no_node});
  inputs.push_back(id);
  return id;
}

ValueId Graph::add_constant(Tensor tensor, const std::string& value_name) {
  TensorType type = tensor.type();
  return add_value({value_name, std::move(type), std::move(tensor), no_node});
}

std::vector<ValueId> Graph::add_node(Op op, std::vector<ValueId> node_inputs, Attributes attributes,
                                     const std::string& node_name) {
  const OpInfo& info = op_info(op);
  while (!node_inputs.empty() && node_inputs.back() == no_value) node_inputs.pop_back();
  const int arity = static_cast<int>(node_inputs.size());
  if (arity < info.min_inputs || arity > info.max_inputs) {
    throw ModelError("{} '{}': got {} inputs, expected {} to {}", info.name, node_name, arity,
                     info.min_inputs, info.max_inputs);
  }
  for (std::size_t i = 0; i < node_inputs.size(); ++i) {
    if (node_inputs[i] == no_value) {
      if (static_cast<int>(i) < info.min_inputs)
        throw ModelError("{} '{}': input {} is required", info.name, node_name, i);
    } else if (node_inputs[i] < 0 || static_cast<std::size_t>(node_inputs[i]) >= values_.size()) {
      throw InternalError("{} '{}': the graph has no value {}", info.name, node_name, node_inputs[i]);
    }
  }
  fill_defaults(info, attributes, node_name);
  std::vector<TensorType> output_types;
  try {
    symbols.origin = node_name.empty() ? std::string(info.name) : node_name;
    output_types = info.infer(op, types(node_inputs), attributes, symbols);
  } catch (const UnknownExtentError& error) {
    throw UnknownExtentError(fmt::format("{} '{}': {}", info.name, node_name, error.what()));
  } catch (const ModelError& error) {
    throw ModelError("{} '{}': {}", info.name, node_name, error.what());
  } catch (const UnsupportedError& error) {
    throw UnsupportedError("{} '{}': {}", info.name, node_name, error.what());
  }
  std::vector<Value> results;
  results.reserve(output_types.size());
  for (TensorType& output_type : output_types) results.push_back({"", std::move(output_type), {}, no_node});
  return add_known_node({op, std::move(node_inputs), {}, std::move(attributes), node_name},
                        std::move(results));
}

std::vector<ValueId> Graph::add_known_node(Node node, std::vector<Value> results) {
  node.outputs.clear();
  for (Value& result : results) {
    result.producer = static_cast<NodeId>(nodes_.size());
    node.outputs.push_back(add_value(std::move(result)));
  }
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
}

ValueId Graph::add(Op op, std::vector<ValueId> node_inputs, Attributes attributes,
                   const std::string& node_name) {
  return add_node(op, std::move(node_inputs), std::move(attributes), node_name).at(0);
}

std::vector<const TensorType*> Graph::types(const std::vector<ValueId>& ids) const {
  std::vector<const TensorType*> result;
  result.reserve(ids.size());
  for (const ValueId id : ids) result.push_back(id == no_value ? nullptr : &type(id));
  return result;
}

IdMap<std::vector<NodeId>> Graph::uses() const {
  IdMap<std::vector<NodeId>> result(values_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    for (ValueId input : nodes_[i].inputs)
      if (input != no_value) result[input].push_back(static_cast<NodeId>(i));
  }
  return result;
}

}  // namespace sylvite
