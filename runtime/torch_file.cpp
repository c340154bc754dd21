#include "runtime/torch_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "frontend/onnx/external_data.h"
#include "frontend/onnx/weights.h"
#include "frontend/torch/torch_import.h"
#include "frontend/torch/torch_text.h"
#include "runtime/safetensors.h"
#include "sylvite/extent.h"

namespace sylvite {
namespace {

constexpr std::string_view suffix = ".torch";

/// Nothing for one that may be declared, but not be read.
std::optional<DType> served_type(const std::string& name) {
  try {
    return parse_dtype(name);
  } catch (const ModelError&) {
    return std::nullopt;
  }
}

bool is_constant(const TorchTextInput& input, const TorchFile& file, const ImportOptions& options) {
  if (!input.is_parameter) return false;
  if (file.weights.contains(input.name)) return true;
  const std::optional<DType> dtype = served_type(input.type.dtype);
  return options.random_weights && dtype && is_float(*dtype);
}

/// Where it is no symbol by itself: the number, for symbols that `options` fix.
std::int64_t computed_extent(const Extent& extent, const std::string& input, const ImportOptions& options) {
  SymbolValues values;
  for (const std::string& symbol : extent.symbols()) {
    const auto given = options.dims.find(symbol);
    if (given == options.dims.end() || !given->second.is_fixed()) {
      throw UsageError(
          "input '{}' has the size {}, for which '{}' must be a number: give it with --dims {}=4", input,
          extent.to_string(), symbol, symbol);
    }
    values[symbol] = given->second.low;
  }
  return extent.at(values);
}

/// A multiple of one symbol, and a number: what a run's size tells the symbol by.
std::optional<DeclaredInput::Axis> told_axis(const Extent& extent) {
  if (extent.terms().size() != 1) return {};
  const Extent::Term& term = extent.terms()[0];
  if (term.coefficient < 1 || term.factors.size() != 1 || term.factors[0].kind != ExtentFactor::Kind::symbol)
    return {};
  return DeclaredInput::Axis{0, term.factors[0].name, term.coefficient, extent.constant()};
}

DeclaredInput declared_input(const TorchTextInput& input, const ImportOptions& options) {
  DeclaredInput declared{
      .name = input.name, .dtype = served_type(input.type.dtype), .has_shape = true, .axes = {}};
  for (const Extent& extent : input.type.shape)
    if (const std::optional<DeclaredInput::Axis> told = told_axis(extent))
      declared.axes.push_back(*told);
    else
      declared.axes.push_back({computed_extent(extent, input.name, options)});
  return declared;
}

/// Those that a run is given, in order, and the symbols, which no run is given.
std::vector<DeclaredInput> declared_inputs(const TorchText& text, const TorchFile& file,
                                           const ImportOptions& options) {
  std::vector<DeclaredInput> inputs;
  for (const TorchTextInput& input : text.inputs)
    if (input.type.dtype == "int")
      inputs.push_back(
          {.name = input.name, .dtype = {}, .is_given_to_runs = false, .axes = {{0, input.name}}});
    else if (!is_constant(input, file, options))
      inputs.push_back(declared_input(input, options));
  // Symbols are called by the inputs that have them, not by their own places.
  std::ranges::stable_sort(inputs, std::greater{}, &DeclaredInput::is_given_to_runs);
  return inputs;
}

/// A number for each symbol.
SymbolValues symbol_values(const TorchFile& file, const ImportOptions& options, const ModelSizes& model,
                           const Sizes& sizes) {
  SymbolValues values;
  for (const auto& [name, range] : options.dims)
    if (range.is_fixed()) values[name] = range.low;
  std::size_t next = 0;
  for (const DeclaredInput& input : declared_inputs(read_torch_text(file.text), file, options)) {
    if (!input.is_given_to_runs) continue;
    const Dims dims = dims_at(model.inputs.at(next++), sizes);
    for (std::size_t axis = 0; axis < dims.size(); ++axis)
      if (const DeclaredInput::Axis& declared = input.axes[axis]; !declared.symbol.empty())
        values[declared.symbol] = symbol_at(dims[axis], declared.factor, declared.addend).value();
  }
  return values;
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
  return path.ends_with(suffix);
}

TorchFile read_torch_file(const std::string& path, bool follow_links) {
  TorchFile file{read_file(path), {}};
  const std::string weights = std::filesystem::path(path).stem().string() + ".safetensors";
  const ExternalData folder(folder_of_model(path), follow_links);
  if (!folder.exists(weights)) return file;
  std::map<std::string, Tensor> found = read_safetensors(folder, weights);
  for (const TorchTextInput& input : read_torch_text(file.text).inputs) {
    if (!input.is_parameter) continue;
    const auto value = found.find(input.name);
    if (value == found.end())
      throw ModelError("'{}' has no tensor '{}', a parameter of '{}'", folder.path_of(weights), input.name,
                       path);
    file.weights.emplace(input.name, value->second);
  }
  return file;
}

ModelFacts torch_file_facts(const TorchFile& file) {
  const TorchText read = read_torch_text(file.text);
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
  for (const auto& [name, weight] : file.weights) {
    facts.weight_elements += weight.size();
    facts.weight_bytes += weight.byte_size();
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

ModelSizes torch_file_sizes(const TorchFile& file, const ImportOptions& options) {
  ModelSizes sizes = read_model_sizes(declared_inputs(read_torch_text(file.text), file, options), options);
  for (std::size_t i = 0; i < sizes.symbols.size(); ++i) {
    const auto tells = [&](const SizedInput& input) {
      return std::ranges::any_of(input.axes,
                                 [&](const auto& axis) { return axis.symbol == static_cast<int>(i); });
    };
    const std::string& name = sizes.symbols[i].name;
    if (std::ranges::none_of(sizes.inputs, tells))
      throw UsageError("no input tells the size '{}'; give it with --dims {}=4 (import.dims)", name, name);
  }
  return sizes;
}

ImportedModel import_torch_file(const TorchFile& file, const ImportOptions& options, const ModelSizes& model,
                                const Sizes& sizes, GradientKernels gradients) {
  TorchImportOptions torch;
  torch.sizes = symbol_values(file, options, model, sizes);
  torch.max_nodes = options.max_nodes;
  torch.gradients = gradients;
  torch.constants = file.weights;
  for (const auto& [name, value] : options.bound_inputs) torch.constants.insert_or_assign(name, value);
  TorchGraph imported = import_torch(file.text, torch);
  if (options.random_weights) {
    for (const TorchInput& input : imported.inputs) {
      if (!input.is_parameter || input.graph_input < 0 || !is_float(input.tensor.type.dtype)) continue;
      const ValueId id = imported.graph.inputs[static_cast<std::size_t>(input.graph_input)];
      torch.constants.emplace(input.name,
                              random_parameter(input, imported.graph.type(id).dims(), options.seed));
    }
    imported = import_torch(file.text, torch);
  }
  if (imported.graph.outputs.empty()) throw ModelError("the captured graph computes nothing");
  return {std::move(imported.graph), nullptr, {}};
}

}  // namespace sylvite
