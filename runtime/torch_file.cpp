#include "runtime/torch_file.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "frontend/onnx/weights.h"
#include "frontend/torch/torch_import.h"
#include "frontend/torch/torch_text.h"

namespace sylvite {
namespace {

std::map<std::string, std::int64_t> sizes_of(const std::string& text, const ImportOptions& options) {
  std::map<std::string, std::int64_t> sizes;
  for (const auto& [name, range] : options.dims) {
    if (!range.is_fixed())
      throw UsageError("the size '{}' of a captured graph is a range; give a number", name);
    sizes[name] = range.low;
  }
  for (const std::string& symbol : torch_symbols(text))
    if (!sizes.contains(symbol))
      throw UsageError("the size '{}' is open; give it with --dims {}=4 (import.dims)", symbol, symbol);
  return sizes;
}

/// Of a variance that keeps sums over all axes but the first near 1.
Tensor random_parameter(const TorchInput& input, const Dims& dims, std::uint64_t seed) {
  const std::int64_t rows = dims.empty() ? 1 : std::max<std::int64_t>(dims[0], 1);
  const auto terms = static_cast<double>(std::max<std::int64_t>(input.tensor.type.element_count() / rows, 1));
  return random_floats(input.tensor.type.dtype, dims, input.name, seed, std::sqrt(3 / terms));
}

ModelPort port_of(const std::string& name, const TorchType& type) {
  Shape shape;
  for (const Extent& extent : type.shape) shape.push_back(extent);
  return {name, type.dtype + shape.to_string(), ValueKind::tensor};
}

}  // namespace

bool is_torch_file(const std::string& path) {
  return path.ends_with(".torch");
}

ModelFacts torch_file_facts(const std::string& text) {
  const TorchText read = read_torch_text(text);
  ModelFacts facts;
  facts.producer = "a captured PyTorch graph";
  facts.nodes = static_cast<std::int64_t>(read.nodes.size());
  std::map<std::string, const TorchType*> types;
  for (const TorchTextInput& input : read.inputs) {
    types[input.name] = &input.type;
    if (input.type.dtype != "int" && !input.is_parameter)
      facts.inputs.push_back(port_of(input.name, input.type));
    if (input.is_parameter) ++facts.weights;
  }
  for (const TorchNode& node : read.nodes) {
    ++facts.operators[node.op];
    if (!node.is_tuple) types[node.name] = &node.types.at(0);
  }
  for (const TorchReturned& returned : read.outputs) {
    const auto found = types.find(returned.value.text);
    if (found != types.end()) facts.outputs.push_back(port_of(found->first, *found->second));
  }
  return facts;
}

ImportedModel import_torch_file(const std::string& text, const ImportOptions& options) {
  TorchImportOptions torch;
  torch.sizes = sizes_of(text, options);
  torch.max_nodes = options.max_nodes;
  torch.constants = options.bound_inputs;
  TorchGraph imported = import_torch(text, torch);
  if (options.random_weights) {
    for (const TorchInput& input : imported.inputs) {
      if (!input.is_parameter || input.graph_input < 0 || !is_float(input.tensor.type.dtype)) continue;
      const ValueId id = imported.graph.inputs[static_cast<std::size_t>(input.graph_input)];
      torch.constants.emplace(input.name,
                              random_parameter(input, imported.graph.type(id).dims(), options.seed));
    }
    imported = import_torch(text, torch);
  }
  if (imported.graph.outputs.empty()) throw ModelError("the captured graph computes nothing");
  return {std::move(imported.graph), nullptr, {}};
}

}  // namespace sylvite
