// The two parts of a model that cannot be compiled whole: what the importer leaves for the run, and the run.

#include <google/protobuf/repeated_field.h>
#include <onnx-ml.pb.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "frontend/graph/copy.h"
#include "frontend/graph/interpreter.h"
#include "frontend/onnx/graph_import.h"
#include "frontend/onnx/growing_states.h"
#include "frontend/onnx/import_context.h"
#include "frontend/onnx/loop_trips.h"
#include "frontend/onnx/model_states.h"
#include "frontend/onnx/node_order.h"
#include "frontend/onnx/tail_steps.h"
#include "frontend/onnx/tensor.h"

namespace sylvite {
namespace {

/// Throws InputError naming a value that is not of the kind that its port, number `i`, declares.
void check_kind(const HostValue& value, const ModelPort& port, std::size_t i) {
  const bool fits = (port.kind == ValueKind::tensor && value.is_tensor()) ||
                    (port.kind == ValueKind::strings && value.is_strings()) ||
                    (port.kind == ValueKind::sequence && value.is_sequence()) ||
                    port.kind == ValueKind::optional;
  if (!fits)
    throw InputError("input {} '{}': got {}, expected {}", i, port.name, value.describe(), port.type);
}

/// The nodes that the outputs need, in order, and every name that those and the outputs read.
std::vector<DeferredNode> needed_nodes(const std::vector<DeferredNode>& nodes, std::set<std::string>& names) {
  std::vector<DeferredNode> needed;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const auto& outputs = node->node->output();
    const bool is_read = std::any_of(outputs.begin(), outputs.end(),
                                     [&](const std::string& name) { return names.contains(name); });
    if (!is_read) continue;
    names.merge(names_read(*node->node));
    needed.push_back(*node);
  }
  std::reverse(needed.begin(), needed.end());
  return needed;
}

class OnnxHostPart final : public HostPart {
 public:
  OnnxHostPart(const ParsedModel& model, const Sizes& sizes)
      : model_(model), sizes_(sizes), options_(options_at(model, sizes)) {
    for (const onnx::ValueInfoProto& output : model_.proto->graph().output())
      outputs_.push_back(declared_port(output));
  }

  /// Nothing when the graph is the whole model.
  static ImportedModel import(const ParsedModel& model, const Sizes& sizes) {
    const auto part = std::make_shared<OnnxHostPart>(model, sizes);
    OnnxGraphImporter importer(model.proto, model.folder, part->options_, OnnxStage::first,
                               model.initializers);
    ImportedModel result;
    result.graph = importer.import_first(part->nodes_, part->handovers_, part->inputs_);
    result.warnings = importer.warnings();
    part->texts_ = importer.known_texts();
    part->expectations_ = importer.expectations();
    if (part->nodes_.empty() && part->handovers_.empty() && part->expectations_.empty()) return result;
    for (const DeferredNode& node : part->nodes_)
      part->steps_.push_back({describe_node(*node.node), node.reason});
    for (const HostHandover& handover : part->handovers_)
      if (handover.texts != nullptr)
        part->steps_.push_back({fmt::format("'{}'", handover.name), "looks up texts by their numbers"});
    for (const OnnxExpectation& expected : part->expectations_)
      part->steps_.push_back({expected.node, fmt::format("checks what it takes: {}", expected.otherwise)});
    for (const ValueId id : result.graph.inputs) {
      part->graph_types_.push_back(result.graph.type(id));
      const auto port = std::find_if(
          part->inputs_.begin(), part->inputs_.end(),
          [&](const ModelPort& candidate) { return candidate.name == result.graph.value(id).name; });
      part->graph_inputs_.push_back(static_cast<std::size_t>(port - part->inputs_.begin()));
    }
    std::set<std::string> known;
    for (const HostHandover& handover : part->handovers_)
      if (handover.graph_outputs.empty()) known.insert(handover.name);
    part->tail_steps_.prepare(part->nodes_, std::move(known));
    part->graph_output_count_ = result.graph.outputs.size();
    result.host = part;
    return result;
  }

  [[nodiscard]] const std::vector<HostStep>& steps() const override { return steps_; }
  [[nodiscard]] const std::vector<ModelPort>& inputs() const override { return inputs_; }
  [[nodiscard]] const std::vector<ModelPort>& outputs() const override { return outputs_; }

  [[nodiscard]] std::vector<HostValue> run(const std::vector<HostValue>& inputs, const GraphRunner& run_graph,
                                           const Evaluation& evaluation,
                                           const TailRunner& run_tail) const override {
    const std::vector<Tensor> results = run_static(inputs, run_graph);
    check_expectations(results);
    NamedValues values;
    values.reserve(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) values.emplace_back(inputs_[i].name, inputs[i]);
    for (const HostHandover& handover : handovers_)
      values.emplace_back(handover.name, value_of(handover, results));
    if (nodes_.empty())
      if (auto outputs = by_name(values)) return std::move(*outputs);
    if (run_tail.run)
      if (auto outputs = tail_steps_.run(values, evaluation, run_tail)) return std::move(*outputs);
    std::vector<std::string> wanted;
    wanted.reserve(outputs_.size());
    for (const ModelPort& output : outputs_) wanted.push_back(output.name);
    OnnxGraphImporter importer(model_.proto, model_.folder, options_, OnnxStage::running,
                               model_.initializers);
    const TripRunner trips = {model_, run_tail, tail_steps_.known()};
    const double start = steady_seconds();
    std::vector<HostValue> made = importer.run_nodes(nodes_, values, wanted, evaluation, &trips);
    if (run_tail.run) model_.tails->note_step_seconds(steady_seconds() - start);
    return made;
  }

 private:
  /// The outputs where all of them are there.
  [[nodiscard]] std::optional<std::vector<HostValue>> by_name(const NamedValues& values) const {
    std::vector<HostValue> made;
    for (const ModelPort& output : outputs_) {
      const auto named = std::ranges::find(values, output.name, &NamedValues::value_type::first);
      if (named == values.end()) return std::nullopt;  // an initializer
      made.push_back(named->second);
    }
    return made;
  }

  [[nodiscard]] std::vector<Tensor> run_static(const std::vector<HostValue>& inputs,
                                               const GraphRunner& run_graph) const {
    if (inputs.size() != inputs_.size())
      throw InputError("{} inputs given, the model takes {}", inputs.size(), inputs_.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) check_kind(inputs[i], inputs_[i], i);
    std::vector<Tensor> tensors;
    for (std::size_t at = 0; at < graph_inputs_.size(); ++at) {
      const std::size_t i = graph_inputs_[at];
      if (inputs[i].is_strings() && texts_ != nullptr) {
        tensors.push_back(texts_->places_of(inputs[i].strings()));
        if (tensors.back().type() == graph_types_[at]) continue;
      }
      if (!inputs[i].is_tensor() || inputs[i].tensor().type() != graph_types_[at]) {
        throw InputError("input {} '{}': got {}, expected {}", i, inputs_[i].name, inputs[i].describe(),
                         inputs_[i].type);
      }
      tensors.push_back(inputs[i].tensor());
    }
    return graph_output_count_ == 0 ? std::vector<Tensor>() : run_graph(tensors);
  }

  void check_expectations(const std::vector<Tensor>& results) const {
    for (std::size_t i = 0; i < expectations_.size(); ++i) {
      const Tensor& holds = results.at(results.size() - expectations_.size() + i);
      if (holds.as_int64(0) == 0)
        throw InputError("{}: {}", expectations_[i].node, expectations_[i].otherwise);
    }
  }

  static HostValue value_of(const HostHandover& handover, const std::vector<Tensor>& results) {
    if (handover.texts != nullptr)
      return HostValue(chosen_strings(*handover.texts, results.at(handover.graph_outputs[0])));
    if (!handover.is_sequence)
      return handover.graph_outputs.empty() ? handover.known
                                            : HostValue(results.at(handover.graph_outputs[0]));
    HostValue::Sequence items;
    for (const std::size_t i : handover.graph_outputs) items.emplace_back(results.at(i));
    return HostValue(std::move(items));
  }

  ParsedModel model_;
  Sizes sizes_;
  ImportOptions options_;
  TailSteps tail_steps_ = {model_, sizes_, options_};
  std::vector<HostStep> steps_;
  std::vector<ModelPort> inputs_;
  std::vector<ModelPort> outputs_;
  std::shared_ptr<const KnownTexts> texts_;  ///< of inputs of texts that the graph takes as numbers
  std::vector<DeferredNode> nodes_;          ///< of *model_
  std::vector<HostHandover> handovers_;
  std::vector<OnnxExpectation> expectations_;  ///< the graph's last outputs
  std::vector<std::size_t> graph_inputs_;      ///< per graph input, its place in inputs_
  std::vector<TensorType> graph_types_;        ///< per graph input
  std::size_t graph_output_count_ = 0;
};

}  // namespace

ModelPort declared_port(const onnx::ValueInfoProto& value) {
  const onnx::TypeProto& type = value.type();
  if (type.has_sequence_type()) return {value.name(), "a sequence", ValueKind::sequence};
  if (type.has_optional_type()) return {value.name(), "an optional", ValueKind::optional};
  if (!type.has_tensor_type()) return {value.name(), "of another kind than tensors", ValueKind::tensor};
  if (type.tensor_type().elem_type() == onnx::TensorProto::STRING)
    return {value.name(), "strings", ValueKind::strings};
  return {value.name(),
          fmt::format("{} of a shape that depends on data",
                      dtype_name(dtype_of_onnx(type.tensor_type().elem_type()))),
          ValueKind::tensor};
}

void OnnxGraphImporter::import_or_defer(const onnx::NodeProto& node, OnnxScope& scope,
                                        const OnnxFrame& frame) {
  std::string reason;
  std::string size;
  const std::size_t expectations_before = expectations_.size();
  for (const std::string& name : names_read(node)) {
    const OnnxBinding* binding = scope.find(name);
    if (reason.empty() && binding != nullptr && binding->is_deferred)
      reason = fmt::format("reads '{}', which is known only when the model runs", name);
  }
  const bool is_first = reason.empty();
  if (is_first) {
    try {
      import_node(node, scope, frame);
      return;
    } catch (const NeedsValueError& error) {
      reason = error.reason();
      size = error.size();
      expectations_.resize(expectations_before);
    }
  }
  check_operator(node, frame);
  for (const std::string& name : node.output())
    if (!name.empty()) scope.bind(name, OnnxBinding::deferred());
  deferred_.push_back({&node, reason, is_first, size});
}

HostHandover OnnxGraphImporter::hand_over(const std::string& name, const OnnxBinding& binding) {
  HostHandover handover;
  handover.name = name;
  const auto add_output = [&](ValueId id) {
    handover.graph_outputs.push_back(graph_.outputs.size());
    graph_.outputs.push_back(id);
  };
  if (binding.sequence != nullptr) {
    handover.is_sequence = true;
    for (const ValueId id : *binding.sequence) add_output(id);
  } else if (binding.value != no_value && !graph_.is_constant(binding.value)) {
    add_output(binding.value);
    handover.texts = binding.texts;
  } else {
    handover.known = value_of(binding);
  }
  return handover;
}

Graph OnnxGraphImporter::import_first(std::vector<DeferredNode>& deferred,
                                      std::vector<HostHandover>& handovers, std::vector<ModelPort>& inputs) {
  OnnxScope scope;
  import_main(scope);
  std::set<std::string> names;
  bool is_whole = expectations_.empty();
  for (const onnx::ValueInfoProto& output : model_->graph().output()) {
    if (scope.find(output.name()) == nullptr)
      throw ModelError("nothing produces the model's output '{}'", output.name());
    const OnnxBinding* binding = scope.find(output.name());
    is_whole = is_whole && (binding->is_deferred ? false : read(scope, output.name()).is_tensor());
    names.insert(output.name());
  }
  for (const ModelPort& input : free_inputs_) is_whole = is_whole && scope.find(input.name)->is_tensor();
  if (is_whole) {
    import_outputs(scope);
    return without_dead_nodes(graph_);
  }
  deferred = needed_nodes(deferred_, names);
  inputs = free_inputs_;
  for (const std::string& name : names) {
    const OnnxBinding* binding = scope.find(name);
    if (binding == nullptr || binding->is_deferred) continue;
    const bool is_input =
        std::any_of(inputs.begin(), inputs.end(), [&](const auto& input) { return input.name == name; });
    const bool is_unread =
        binding->value == no_value && (binding->initializer != nullptr || binding->sparse != nullptr);
    if (!is_input && !is_unread) handovers.push_back(hand_over(name, *binding));
  }
  for (const OnnxExpectation& expected : expectations_) graph_.outputs.push_back(expected.holds);
  return without_dead_nodes(graph_);
}

OnnxBinding OnnxGraphImporter::bind_value(const HostValue& value) {
  OnnxBinding binding;
  if (value.is_tensor()) {
    binding.value = graph_.add_constant(value.tensor());
  } else if (value.is_strings()) {
    binding.strings = std::make_shared<const StringTensor>(value.strings());
  } else if (value.is_sequence()) {
    std::vector<ValueId> items;
    for (const HostValue& item : value.sequence()) items.push_back(graph_.add_constant(item.tensor()));
    binding.sequence = std::make_shared<const std::vector<ValueId>>(std::move(items));
  }
  return binding;
}

HostValue OnnxGraphImporter::value_of(const OnnxBinding& binding) const {
  const auto tensor_of = [&](ValueId id) {
    if (!graph_.is_constant(id))
      throw InternalError("'{}' is not constant in a host step", graph_.value(id).name);
    return *graph_.value(id).constant;
  };
  if (binding.strings != nullptr) return HostValue(*binding.strings);
  if (binding.value != no_value) return tensor_of(binding.value);
  if (binding.sequence == nullptr) return {};
  HostValue::Sequence items;
  for (const ValueId id : *binding.sequence) items.emplace_back(tensor_of(id));
  return HostValue(std::move(items));
}

std::vector<HostValue> OnnxGraphImporter::run_nodes(
    const std::vector<DeferredNode>& nodes, const std::vector<std::pair<std::string, HostValue>>& values,
    const std::vector<std::string>& wanted, const Evaluation& evaluation, const TripRunner* trips) {
  trips_ = trips;
  builder_.fold_everything(options_.host_bytes, options_.host_work, evaluation);
  const OnnxFrame frame = main_frame();
  OnnxScope scope;
  bind_initializers(model_->graph(), scope);
  for (const auto& [name, value] : values) scope.bind(name, bind_value(value));
  for (const DeferredNode& node : nodes) import_node(*node.node, scope, frame);
  std::vector<HostValue> results;
  results.reserve(wanted.size());
  for (const std::string& name : wanted) results.push_back(value_of(read(scope, name)));
  return results;
}

NodeStore* OnnxGraphImporter::node_store() const {
  return trips_ == nullptr ? nullptr : trips_->model.nodes.get();
}

std::optional<LoopTrips> OnnxGraphImporter::loop_trips(const onnx::GraphProto& body, OnnxScope& scope,
                                                       const OnnxFrame& frame) {
  const bool is_of_functions = frame.caller != nullptr;  // whose attributes and versions are their own
  if (trips_ == nullptr || is_of_functions || !trips_->is_worth_it()) return std::nullopt;
  std::vector<TailValue> around;
  for (const std::string& name : names_around(body)) {
    const onnx::TensorProto* own = find_initializer(body, name);
    if (own != nullptr) {
      around.push_back({name, weight(*own), true});
      continue;
    }
    if (scope.find(name) == nullptr) continue;  // a name of a subgraph's own
    const OnnxBinding& binding = read(scope, name);
    if (!binding.is_tensor()) return std::nullopt;
    const bool is_known = binding.initializer != nullptr || trips_->known.contains(name);
    around.push_back({name, *graph_.value(binding.value).constant, is_known});
  }
  return LoopTrips(*trips_, body, std::move(around));
}

ImportedModel import_at(const ParsedModel& model, const Sizes& sizes) {
  if (model.initializers != nullptr)
    if (std::optional<ImportedModel> kept = model.initializers->take(sizes)) return std::move(*kept);
  if (model.growing) return import_growing(model, sizes);
  ImportedModel imported = OnnxHostPart::import(model, sizes);
  if (model.states.empty()) return imported;
  if (imported.host != nullptr) {
    const std::vector<HostStep>& steps = imported.host->steps();
    throw UnsupportedError("states in a model with steps on the host{}",
                           steps.empty() ? "" : ": " + steps.front().name + ": " + steps.front().reason);
  }
  mark_states(imported.graph, model.states);
  return imported;
}

std::vector<HostValue> run_model(const HostPart* host, const std::vector<HostValue>& inputs,
                                 const GraphRunner& run_graph, const Evaluation& evaluation,
                                 const TailRunner& run_tail) {
  if (host != nullptr) return host->run(inputs, run_graph, evaluation, run_tail);
  std::vector<Tensor> tensors;
  tensors.reserve(inputs.size());
  for (const HostValue& input : inputs) tensors.push_back(input.tensor());
  const std::vector<Tensor> results = run_graph(tensors);
  return {results.begin(), results.end()};
}

std::vector<HostValue> interpret(const ImportedModel& model, const std::vector<HostValue>& inputs) {
  std::vector<Tensor> states = zero_states(model.graph);
  return run_model(model.host.get(), inputs, [&](const std::vector<Tensor>& tensors) {
    return interpret(model.graph, tensors, states);
  });
}

}  // namespace sylvite
