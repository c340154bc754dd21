#pragma once
// The Graph IR: nodes over the op table, values in static single assignment, constants beside them.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sylvite/attributes.h"
#include "sylvite/id_map.h"
#include "sylvite/op.h"
#include "sylvite/symbols.h"
#include "sylvite/tensor.h"
#include "sylvite/types.h"

namespace sylvite {

using ValueId = std::int32_t;
using NodeId = std::int32_t;
inline constexpr ValueId no_value = -1;  ///< stands for an optional input that is not given
inline constexpr NodeId no_node = -1;

struct Value {
  std::string name;  ///< unique in its graph; kept from the model where there was one
  TensorType type;
  std::optional<Tensor> constant;  ///< set for constants, which have no producer
  NodeId producer = no_node;       ///< no_node for graph inputs and constants
};

struct Node {
  Op op = Op::add;
  std::vector<ValueId> inputs;  ///< may hold no_value where the op's row says optional
  std::vector<ValueId> outputs;
  Attributes attributes;
  std::string name;  ///< where it came from in the model, for messages and profiles; not part of identity
};

/// A value that stays between runs: what one run gives as an output is what the next one takes as an input.
struct State {
  std::size_t input = 0;   ///< index into Graph::inputs
  std::size_t output = 0;  ///< index into Graph::outputs; a value of the same type
  bool operator==(const State&) const = default;
};

/// A graph owns its values and nodes. Nodes stand in topological order: the ids of a node's inputs are
/// produced by earlier nodes. Ids are indices and stay valid: a graph only grows, and what removes things builds a
/// new graph. Thread safety: const use only.
class Graph {
 public:
  std::string name = "graph";
  Symbols symbols;  ///< of extents in types and attributes
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  /// The model's names of the outputs, parallel to `outputs`; may be shorter. Two outputs may be one value,
  /// and an output may be an input or a constant, so the names live here and not on the values.
  std::vector<std::string> output_names;
  /// Values that stay between runs; no input and no output is in two. To the interpreter they are inputs and outputs as
  /// others; a compiled model keeps them, and its runs neither take nor give them.
  std::vector<State> states;
  /// Outputs that the caller writes over an input once a run is done, and that a run may write there itself. No input and
  /// no output is in two, and none is a state; to the interpreter they are inputs and outputs as others.
  std::vector<State> overwrites;
  /// The name of output i: output_names[i] where given, else the value's name.
  [[nodiscard]] const std::string& output_name(std::size_t i) const;

  ValueId add_input(const std::string& value_name, TensorType type);
  ValueId add_constant(Tensor tensor, const std::string& value_name = "");
  /// Adds a node, fills in attribute defaults, and infers its output types by the op's rule. Absent inputs at
  /// the end are dropped, so that equal nodes have equal text. Returns the outputs. Throws ModelError naming
  /// the node when arity, attributes or types do not fit.
  std::vector<ValueId> add_node(Op op, std::vector<ValueId> node_inputs, Attributes attributes = {},
                                const std::string& node_name = "");
  /// add_node for operations with one output.
  ValueId add(Op op, std::vector<ValueId> node_inputs, Attributes attributes = {},
              const std::string& node_name = "");
  /// Adds a node of which all is known, as a copy's is: `results` say names and types, nothing is inferred.
  /// REQUIRES inputs of this graph, and attributes and types as the op's row says.
  std::vector<ValueId> add_known_node(Node node, std::vector<Value> results);

  [[nodiscard]] const std::vector<Value>& values() const { return values_; }
  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  [[nodiscard]] const Value& value(ValueId id) const { return values_.at(static_cast<std::size_t>(id)); }
  [[nodiscard]] Value& value(ValueId id) { return values_.at(static_cast<std::size_t>(id)); }
  [[nodiscard]] const Node& node(NodeId id) const { return nodes_.at(static_cast<std::size_t>(id)); }
  [[nodiscard]] const TensorType& type(ValueId id) const { return value(id).type; }
  /// As InputTypes of the op table: nullptr for no_value. The pointers hold until values are added.
  [[nodiscard]] std::vector<const TensorType*> types(const std::vector<ValueId>& ids) const;
  /// Per input: is it a state?
  [[nodiscard]] std::vector<bool> state_inputs() const;
  /// Per output: is it the next value of a state?
  [[nodiscard]] std::vector<bool> state_outputs() const;
  [[nodiscard]] bool is_constant(ValueId id) const {
    return id != no_value && value(id).constant.has_value();
  }
  /// For each value, the nodes that read it, in order, once per use.
  [[nodiscard]] IdMap<std::vector<NodeId>> uses() const;
  /// Renames a value, adding a number when the name is taken. Empty names are ignored.
  void rename(ValueId id, const std::string& value_name);

 private:
  ValueId add_value(Value value);
  [[nodiscard]] std::string unique_name(const std::string& wanted) const;

  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::map<std::string, ValueId> by_name_;
};

}  // namespace sylvite
