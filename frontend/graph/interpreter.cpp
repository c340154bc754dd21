#include "frontend/graph/interpreter.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "frontend/graph/bind_symbols.h"
#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

void check_input(const Value& wanted, const Tensor& given) {
  TensorType type = wanted.type;
  type.layout = {};
  bool fits = type.dtype == given.dtype() && type.shape.size() == given.dims().size();
  for (std::size_t i = 0; fits && i < type.shape.size(); ++i) fits = type.shape[i] == given.dims()[i];
  if (!fits) {
    throw InputError("input '{}' is {}, expected {}", wanted.name, given.type().to_string(),
                     type.to_string());
  }
}

/// The tensors of a run, dropped as soon as their last reader is done.
class Memory {
 public:
  explicit Memory(const Graph& graph) : tensors_(graph.values().size()), readers_(graph.values().size(), 0) {
    for (const Node& node : graph.nodes()) count_readers(node.inputs);
    count_readers(graph.outputs);
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      tensors_[static_cast<ValueId>(i)] = graph.values()[i].constant;
  }

  void store(ValueId id, Tensor tensor) { tensors_[id] = std::move(tensor); }
  [[nodiscard]] const Tensor& load(ValueId id) const {
    const std::optional<Tensor>& tensor = tensors_[id];
    if (!tensor) throw InternalError("value {} is read before it is computed", id);
    return *tensor;
  }
  void release(const std::vector<ValueId>& ids) {
    for (ValueId id : ids)
      if (id != no_value && --readers_[id] == 0) tensors_[id].reset();
  }

 private:
  void count_readers(const std::vector<ValueId>& ids) {
    for (ValueId id : ids)
      if (id != no_value) ++readers_[id];
  }

  IdMap<std::optional<Tensor>> tensors_;  ///< per value
  IdMap<int> readers_;                    ///< per value: still to come
};

void run_node(const Node& node, Memory& memory, const Evaluation& evaluate) {
  const OpInfo& info = op_info(node.op);
  std::vector<const Tensor*> inputs;
  std::vector<TensorType> dense_types(node.inputs.size());
  std::vector<const TensorType*> input_types;
  for (ValueId id : node.inputs) {
    inputs.push_back(id == no_value ? nullptr : &memory.load(id));
    TensorType& type = dense_types[input_types.size()];
    if (id != no_value) type = inputs.back()->type();
    input_types.push_back(id == no_value ? nullptr : &type);
  }
  Symbols symbols;  // none: all extents are numbers
  std::vector<TensorType> types = info.infer(node.op, input_types, node.attributes, symbols);
  for (TensorType& type : types) type.layout = {};
  std::vector<Tensor> results = evaluate(node.op, inputs, node.attributes, types);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].type() != types[i]) {
      throw InternalError("{} gave {}, expected {}", info.name, results[i].type().to_string(),
                          types[i].to_string());
    }
    memory.store(node.outputs.at(i), std::move(results[i]));
  }
  memory.release(node.inputs);
}

/// The tensor of trip `at` of a stacked one.
Tensor slice_at(const Tensor& stacked, std::int64_t at) {
  Tensor slice(stacked.dtype(), {stacked.dims().begin() + 1, stacked.dims().end()});
  const auto bytes = static_cast<std::size_t>(slice.byte_size());
  const auto* from = static_cast<const std::byte*>(stacked.data());
  if (bytes > 0) std::memcpy(slice.mutable_data(), from + static_cast<std::size_t>(at) * bytes, bytes);
  return slice;
}

void set_slice(Tensor& stacked, std::int64_t at, const Tensor& slice) {
  const auto bytes = static_cast<std::size_t>(slice.byte_size());
  auto* to = static_cast<std::byte*>(stacked.mutable_data());
  if (bytes > 0) std::memcpy(to + static_cast<std::size_t>(at) * bytes, slice.data(), bytes);
}

/// Do all inputs have types without symbols? Then so has every value.
bool is_known(const Graph& graph) {
  return std::ranges::all_of(graph.inputs, [&](ValueId input) { return graph.type(input).is_known(); });
}

std::vector<Dims> dims_of(const std::vector<Tensor>& tensors) {
  std::vector<Dims> dims;
  dims.reserve(tensors.size());
  for (const Tensor& tensor : tensors) dims.push_back(tensor.dims());
  return dims;
}

}  // namespace

std::vector<Tensor> evaluate_loop(InputTensors inputs, const Attributes& attributes, ResultTypes types,
                                  const BodyRun& run_body) {
  const std::int64_t trips = attributes.integer("trips");
  const auto states = static_cast<std::size_t>(attributes.integer("states"));
  const std::size_t scanned_end = states + static_cast<std::size_t>(attributes.integer("scanned"));
  std::vector<Tensor> given;
  given.reserve(inputs.size());
  for (const Tensor* input : inputs) given.push_back(*input);
  std::vector<Tensor> results;
  results.reserve(types.size());
  for (const TensorType& type : types) results.emplace_back(type.dtype, type.dims());
  for (std::int64_t trip = 0; trip < trips; ++trip) {
    const std::int64_t at = attributes.integer("reverse") != 0 ? trips - 1 - trip : trip;
    for (std::size_t i = states; i < scanned_end; ++i) given[i] = slice_at(*inputs[i], at);
    const std::vector<Tensor> left = run_body(given);
    std::copy_n(left.begin(), states, given.begin());
    for (std::size_t i = states; i < left.size(); ++i) set_slice(results[i], at, left[i]);
  }
  std::copy_n(given.begin(), states, results.begin());
  return results;
}

std::vector<Tensor> evaluate_node(Op op, InputTensors inputs, const Attributes& attributes,
                                  ResultTypes types) {
  const bool is_empty = std::all_of(types.begin(), types.end(),
                                    [](const TensorType& type) { return type.element_count() == 0; });
  if (!is_empty && op == Op::loop) {
    const Graph& body = attributes.graph("body");
    return evaluate_loop(inputs, attributes, types,
                         [&](const std::vector<Tensor>& given) { return interpret(body, given); });
  }
  if (!is_empty) return op_info(op).evaluate(op, inputs, attributes, types);
  std::vector<Tensor> results;
  results.reserve(types.size());
  for (const TensorType& type : types) results.emplace_back(type.dtype, type.dims());
  return results;
}

std::vector<Tensor> interpret(const Graph& graph, const std::vector<Tensor>& inputs) {
  return interpret(graph, inputs, evaluate_node);
}

std::vector<Tensor> interpret(const Graph& graph, const std::vector<Tensor>& inputs,
                              const Evaluation& evaluate) {
  if (inputs.size() != graph.inputs.size())
    throw InputError("graph '{}' takes {} inputs, got {}", graph.name, graph.inputs.size(), inputs.size());
  if (!is_known(graph))
    return interpret(bind_symbols(graph, read_symbols(graph, dims_of(inputs))), inputs, evaluate);
  Memory memory(graph);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_input(graph.value(graph.inputs[i]), inputs[i]);
    memory.store(graph.inputs[i], inputs[i]);
  }
  for (const Node& node : graph.nodes()) run_node(node, memory, evaluate);
  std::vector<Tensor> results;
  results.reserve(graph.outputs.size());
  for (ValueId id : graph.outputs) results.push_back(memory.load(id));
  return results;
}

std::vector<Tensor> zero_states(const Graph& graph) {
  std::vector<Tensor> states;
  states.reserve(graph.states.size());
  for (const State& state : graph.states) {
    const TensorType& type = graph.type(graph.inputs.at(state.input));
    states.emplace_back(type.dtype, type.dims());
  }
  return states;
}

std::vector<Tensor> interpret(const Graph& graph, const std::vector<Tensor>& inputs,
                              std::vector<Tensor>& states) {
  const std::vector<bool> is_state = graph.state_inputs();
  const std::vector<bool> is_next = graph.state_outputs();
  if (inputs.size() + states.size() != is_state.size() || states.size() != graph.states.size()) {
    throw InputError("graph '{}' takes {} inputs and {} states, got {} and {}", graph.name,
                     is_state.size() - graph.states.size(), graph.states.size(), inputs.size(),
                     states.size());
  }
  std::vector<Tensor> all(is_state.size());
  for (std::size_t i = 0; i < states.size(); ++i) all[graph.states[i].input] = states[i];
  for (std::size_t i = 0, next = 0; i < all.size(); ++i)
    if (!is_state[i]) all[i] = inputs[next++];
  const std::vector<Tensor> given = interpret(graph, all);
  for (std::size_t i = 0; i < states.size(); ++i) states[i] = given[graph.states[i].output];
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!is_next[i]) results.push_back(given[i]);
  return results;
}

}  // namespace sylvite
