#include "tests/fuzz/reduce_case.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "frontend/graph/interpreter.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/tensor.h"

namespace sylvite::fuzz {
namespace {

using Step = std::optional<ModelCase>;

/// Drops nodes, inputs and initializers that no output needs.
ModelCase without_unread(ModelCase test) {
  onnx::GraphProto& graph = *test.model.mutable_graph();
  std::set<std::string> needed;
  for (const auto& output : graph.output()) needed.insert(output.name());
  for (int i = graph.node_size() - 1; i >= 0; --i) {
    const auto& node = graph.node(i);
    if (std::ranges::none_of(node.output(), [&](const auto& name) { return needed.contains(name); }))
      graph.mutable_node()->DeleteSubrange(i, 1);
    else
      needed.insert(node.input().begin(), node.input().end());
  }
  for (int i = graph.input_size() - 1; i >= 0; --i) {
    if (needed.contains(graph.input(i).name())) continue;
    graph.mutable_input()->DeleteSubrange(i, 1);
    test.inputs.erase(test.inputs.begin() + i);
  }
  for (int i = graph.initializer_size() - 1; i >= 0; --i)
    if (!needed.contains(graph.initializer(i).name())) graph.mutable_initializer()->DeleteSubrange(i, 1);
  graph.clear_value_info();
  return test;
}

/// What the value holds in the run of the case; nothing when the model does not import.
std::optional<Tensor> value_of(const ModelCase& test, const std::string& name) {
  ModelCase probe = test;
  onnx::GraphProto& graph = *probe.model.mutable_graph();
  graph.clear_output();
  graph.add_output()->set_name(name);
  try {
    return interpret(import_onnx_bytes(probe.model.SerializeAsString(), ""), probe.inputs).at(0);
  } catch (const Error&) {
    return std::nullopt;
  }
}

Step without_output(const ModelCase& test, int at) {
  if (test.model.graph().output_size() < 2) return std::nullopt;
  ModelCase smaller = test;
  smaller.model.mutable_graph()->mutable_output()->DeleteSubrange(at, 1);
  return without_unread(std::move(smaller));
}

/// The outputs of a node become inputs of the graph.
Step cut_before(const ModelCase& test, int at) {
  ModelCase smaller = test;
  onnx::GraphProto& graph = *smaller.model.mutable_graph();
  const onnx::NodeProto node = graph.node(at);
  graph.mutable_node()->DeleteSubrange(at, 1);
  std::set<std::string> outputs;
  for (const auto& output : graph.output()) outputs.insert(output.name());
  for (const std::string& name : node.output()) {
    if (outputs.contains(name)) return std::nullopt;
    const std::optional<Tensor> sample = value_of(test, name);
    if (!sample) return std::nullopt;
    set_value_info(*graph.add_input(), name, sample->dtype(), sample->dims());
    smaller.inputs.push_back(*sample);
  }
  return without_unread(std::move(smaller));
}

/// An earlier value is the only output.
Step end_at(const ModelCase& test, int at) {
  if (at + 1 == test.model.graph().node_size() && test.model.graph().output_size() == 1) return std::nullopt;
  ModelCase smaller = test;
  onnx::GraphProto& graph = *smaller.model.mutable_graph();
  graph.clear_output();
  for (const std::string& name : graph.node(at).output()) graph.add_output()->set_name(name);
  return without_unread(std::move(smaller));
}

/// Readers of a node's first output read its first input instead.
Step bypass(const ModelCase& test, int at) {
  ModelCase smaller = test;
  onnx::GraphProto& graph = *smaller.model.mutable_graph();
  const onnx::NodeProto node = graph.node(at);
  if (node.input_size() == 0 || node.output_size() != 1) return std::nullopt;
  bool is_read = false;
  for (auto& reader : *graph.mutable_node()) {
    for (auto& input : *reader.mutable_input()) {
      if (input != node.output(0)) continue;
      input = node.input(0);
      is_read = true;
    }
  }
  if (!is_read) return std::nullopt;
  return without_unread(std::move(smaller));
}

Tensor with_extent(const Tensor& tensor, std::int64_t from, std::int64_t to) {
  Dims dims = tensor.dims();
  std::ranges::replace(dims, from, to);
  Tensor result(tensor.dtype(), dims);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    if (tensor.size() == 0) break;
    if (is_float(tensor.dtype()))
      result.set_double(i, tensor.as_double(i % tensor.size()));
    else
      result.set_int64(i, tensor.as_int64(i % tensor.size()));
  }
  return result;
}

/// Every extent `from`, of inputs, weights and shape constants, becomes `to`.
Step with_extents(const ModelCase& test, std::int64_t from, std::int64_t to) {
  ModelCase smaller = test;
  onnx::GraphProto& graph = *smaller.model.mutable_graph();
  for (int i = 0; i < graph.input_size(); ++i) {
    Tensor& sample = smaller.inputs[static_cast<std::size_t>(i)];
    sample = with_extent(sample, from, to);
    const std::string name = graph.input(i).name();
    graph.mutable_input(i)->Clear();
    set_value_info(*graph.mutable_input(i), name, sample.dtype(), sample.dims());
  }
  for (auto& proto : *graph.mutable_initializer()) {
    Tensor tensor = with_extent(decode_tensor(proto, ExternalData({})), from, to);
    if (tensor.dtype() == DType::i64) {
      for (std::int64_t i = 0; i < tensor.size(); ++i)
        if (tensor.as_int64(i) == from) tensor.set_int64(i, to);
    }
    proto = tensor_proto(proto.name(), tensor);
  }
  for (auto& output : *graph.mutable_output()) output.clear_type();
  return smaller;
}

std::set<std::int64_t> extents_of(const ModelCase& test) {
  std::set<std::int64_t> extents;
  for (const Tensor& input : test.inputs) extents.insert(input.dims().begin(), input.dims().end());
  for (const auto& proto : test.model.graph().initializer())
    extents.insert(proto.dims().begin(), proto.dims().end());
  return extents;
}

/// All steps from a model, boldest first; each is a function so that only those tried are made.
std::vector<std::function<Step(const ModelCase&)>> steps_of(const ModelCase& test) {
  std::vector<std::function<Step(const ModelCase&)>> steps;
  const int nodes = test.model.graph().node_size();
  for (int i = test.model.graph().output_size() - 1; i >= 0; --i)
    steps.emplace_back([i](const ModelCase& t) { return without_output(t, i); });
  for (int i = 0; i < nodes; ++i) steps.emplace_back([i](const ModelCase& t) { return end_at(t, i); });
  for (int i = nodes - 1; i >= 0; --i)
    steps.emplace_back([i](const ModelCase& t) { return cut_before(t, i); });
  for (int i = 0; i < nodes; ++i) steps.emplace_back([i](const ModelCase& t) { return bypass(t, i); });
  for (const std::int64_t extent : extents_of(test)) {
    for (const std::int64_t to : {std::int64_t{1}, extent / 2, extent - 1})
      if (to >= 1 && to < extent)
        steps.emplace_back([extent, to](const ModelCase& t) { return with_extents(t, extent, to); });
  }
  return steps;
}

}  // namespace

ModelCase reduce_case(const ModelCase& failing, const std::function<bool(const ModelCase&)>& still_fails,
                      int most_tries) {
  ModelCase best = failing;
  for (bool progress = true; progress && most_tries > 0;) {
    progress = false;
    for (const auto& step : steps_of(best)) {
      const Step smaller = step(best);
      if (!smaller || most_tries-- <= 0 || !still_fails(*smaller)) continue;
      best = *smaller;
      progress = true;
      break;
    }
  }
  return best;
}

}  // namespace sylvite::fuzz
