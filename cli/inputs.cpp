#include "cli/inputs.h"

#include <algorithm>
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
  return data.shape.at(static_cast<std::size_t>(axis < 0 ? axis + data.rank() : axis)).extent;
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

void check_type(const std::string& name, const TensorType& wanted, const Tensor& given) {
  if (given.dtype() == wanted.dtype && given.dims() == wanted.dims()) return;
  throw InputError("input '{}' is {}, the model wants {}", name, given.type().to_string(),
                   wanted.to_string());
}

}  // namespace

std::map<std::string, Tensor> read_named_tensors(const std::vector<std::string>& assignments,
                                                 const std::string& option) {
  std::map<std::string, Tensor> tensors;
  for (const std::string& assignment : assignments) {
    const auto [name, path] = split_assignment(assignment, option);
    tensors.insert_or_assign(name, read_tensor(path));
  }
  return tensors;
}

void add_input_options(Options& options) {
  options.add_list("input", "NAME=FILE", "an input from a .npy or .pb file; those not given are random");
  options.add_value("seed", "N", "seed of random inputs", "0");
  options.add_value("check", "ORACLE",
                    "compare with: reference (plain schedules), interpreter (slow), f32 (the model in f32), "
                    "or stored outputs: a folder or a file");
}

std::vector<Tensor> make_inputs(const Options& options, const Graph& graph) {
  std::map<std::string, Tensor> given = read_named_tensors(options.values("input"), "--input");
  const auto seed = static_cast<std::uint64_t>(options.integer("seed"));
  std::vector<Tensor> inputs;
  std::vector<std::string_view> names;
  for (const ValueId id : graph.inputs) {
    const Value& value = graph.value(id);
    names.push_back(value.name);
    const auto found = given.find(value.name);
    if (found == given.end()) {
      inputs.push_back(random_tensor(graph, id, seed));
      continue;
    }
    check_type(value.name, value.type, found->second);
    inputs.push_back(std::move(found->second));
    given.erase(found);
  }
  for (const auto& [name, tensor] : given) {
    throw UsageError("the model has no input '{}'{} (its inputs: {})", name, suggestion(name, names),
                     fmt::join(names, ", "));
  }
  return inputs;
}

}  // namespace sylvite
