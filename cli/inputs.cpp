#include "cli/inputs.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <numbers>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "base/words.h"
#include "cli/options.h"
#include "frontend/onnx/tensor_io.h"
#include "frontend/onnx/weights.h"
#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

constexpr std::int64_t token_limit = 1000;  // indices stay below this even where the table is longer

/// The axis extent that `node` indexes with its second input.
std::int64_t indexed_extent(const Graph& graph, const Node& node) {
  const TensorType& data = graph.type(node.inputs[0]);
  const std::int64_t axis = node.attributes.has("axis") ? node.attributes.integer("axis") : 0;
  return data.shape.at(static_cast<std::size_t>(axis < 0 ? axis + data.rank() : axis)).known();
}

/// The smallest extent that values computed from `input` index in a gather; 0 when none.
std::int64_t index_bound(const Graph& graph, ValueId input) {
  std::set<ValueId> reached{input};
  std::int64_t bound = std::numeric_limits<std::int64_t>::max();
  for (const Node& node : graph.nodes()) {
    const auto reads = [&](std::size_t i) {
      return i < node.inputs.size() && reached.contains(node.inputs[i]);
    };
    if (has_trait(node.op, OpTrait::gather)) {
      if (reads(1)) bound = std::min(bound, indexed_extent(graph, node));
      continue;
    }
    const bool passes_on = has_trait(node.op, OpTrait::pointwise) || has_trait(node.op, OpTrait::movement);
    for (std::size_t i = 0; passes_on && i < node.inputs.size(); ++i)
      if (reads(i)) reached.insert(node.outputs.begin(), node.outputs.end());
  }
  return bound == std::numeric_limits<std::int64_t>::max() ? 0 : bound;
}

Tensor random_tensor(const Graph& graph, ValueId input, std::uint64_t seed) {
  const Value& value = graph.value(input);
  const Dims dims = value.type.dims();
  if (is_float(value.type.dtype))
    return random_floats(value.type.dtype, dims, value.name, seed, std::numbers::sqrt3);
  const std::int64_t bound = index_bound(graph, input);
  const std::int64_t limit = bound > 0 ? std::min(bound, token_limit) : 2;
  return random_integers(value.type.dtype, dims, value.name, seed, limit);
}

/// NAME and FILE of NAME=FILE. A name may have '=' in it: the file is what follows the first '=' after which one is.
std::pair<std::string, std::string> split_file_assignment(const std::string& text,
                                                          const std::string& option) {
  for (std::size_t at = text.find('=', 1); at < text.size(); at = text.find('=', at + 1)) {
    const std::string path = text.substr(at + 1);
    if (std::error_code error; std::filesystem::exists(path, error)) return {text.substr(0, at), path};
  }
  return split_assignment(text, option);
}

/// What --input says: a file by the input's name.
std::map<std::string, std::string> input_files(const Options& options, const std::vector<ModelPort>& ports) {
  std::vector<std::string_view> names;
  names.reserve(ports.size());
  for (const ModelPort& port : ports) names.push_back(port.name);
  std::map<std::string, std::string> files;
  for (const std::string& assignment : options.values("input")) {
    const auto [name, path] = split_file_assignment(assignment, "--input");
    if (std::ranges::find(names, name) == names.end()) {
      throw UsageError("the model has no input '{}'{} (its inputs: {})", name, suggestion(name, names),
                       fmt::join(names, ", "));
    }
    if (!files.emplace(name, path).second) throw UsageError("input '{}' is given twice", name);
  }
  return files;
}

/// no_value when the graph has no input of this name.
ValueId graph_input(const Graph& graph, const std::string& name) {
  for (const ValueId id : graph.inputs)
    if (graph.value(id).name == name) return id;
  return no_value;
}

/// Of a model whose states grow, an input may be as long as the states are.
bool is_grown_input(const Imported& imported, const std::string& name) {
  return imported.room &&
         std::ranges::find(imported.room->inputs, name, &GrownInput::name) != imported.room->inputs.end();
}

/// From its file, else at random.
Tensor make_tensor(const Options& options, const Imported& imported, ValueId input,
                   const std::map<std::string, std::string>& files) {
  const Graph& graph = imported.graph;
  const Value& wanted = graph.value(input);
  const auto file = files.find(wanted.name);
  if (file == files.end())
    return random_tensor(graph, input, static_cast<std::uint64_t>(options.integer("seed")));
  const HostValue given = read_value(file->second, ValueKind::tensor);
  if (given.describe() != wanted.type.to_string() && !is_grown_input(imported, wanted.name)) {
    throw InputError("input '{}' is {}, the model wants {}", wanted.name, given.describe(),
                     wanted.type.to_string());
  }
  return given.tensor();
}

}  // namespace

std::map<std::string, Tensor> read_named_tensors(const std::vector<std::string>& assignments,
                                                 const std::string& option) {
  std::map<std::string, Tensor> tensors;
  for (const std::string& assignment : assignments) {
    const auto [name, path] = split_file_assignment(assignment, option);
    if (!tensors.emplace(name, read_tensor(path)).second)
      throw UsageError("{}: '{}' is given twice", option, name);
  }
  return tensors;
}

void add_input_options(Options& options) {
  options.add_list("input", "NAME=FILE",
                   "an input from a .npy or .pb file; tensors of numbers that are not given are random");
  options.add_value("seed", "N", "seed of random inputs", "0");
}

void add_check_option(Options& options) {
  options.add_value("check", "ORACLE",
                    "compare with: reference (plain schedules), interpreter (slow), f32 (the model in f32), "
                    "or stored outputs: a folder or a file");
}

std::vector<HostValue> make_inputs(const Options& options, const Imported& imported) {
  const std::vector<ModelPort> ports = input_ports(imported);
  const std::map<std::string, std::string> files = input_files(options, ports);
  std::vector<HostValue> inputs;
  for (const ModelPort& port : ports) {
    const auto file = files.find(port.name);
    if (const ValueId id = graph_input(imported.graph, port.name); id != no_value) {
      inputs.emplace_back(make_tensor(options, imported, id, files));
    } else if (file != files.end()) {
      inputs.push_back(read_value(file->second, port.kind));
    } else if (port.kind == ValueKind::optional) {
      inputs.emplace_back();
    } else {
      throw InputError("input '{0}' is {1}, for which there are no random values: add --input {0}=FILE.pb",
                       port.name, port.type);
    }
  }
  return inputs;
}

std::vector<Tensor> make_graph_inputs(const Options& options, const Imported& imported) {
  const Graph& graph = imported.graph;
  const std::map<std::string, std::string> files = input_files(options, input_ports(imported));
  std::vector<Tensor> inputs;
  inputs.reserve(graph.inputs.size());
  const std::vector<bool> is_state = graph.state_inputs();
  for (std::size_t i = 0; i < is_state.size(); ++i)
    if (!is_state[i]) inputs.push_back(make_tensor(options, imported, graph.inputs[i], files));
  return inputs;
}

}  // namespace sylvite
