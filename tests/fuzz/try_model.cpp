#include "tests/fuzz/try_model.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.h"
#include "frontend/graph/interpreter.h"
#include "frontend/onnx/imported_model.h"
#include "frontend/passes/pass_list.h"
#include "lowering/plan/plan.h"
#include "lowering/plan/plan_interpreter.h"

namespace sylvite::fuzz {
namespace {

constexpr std::int64_t most_elements = 1 << 10;  ///< of a model that is run, over all values
constexpr std::int64_t most_nodes = 4'000;       ///< with sanitizers each takes about ten times as long
constexpr std::int64_t host_bytes = 1 << 26;  ///< of a run's host steps, whose values the model does not show
constexpr std::int64_t host_work = 1 << 24;

bool is_tiny(const Graph& graph) {
  std::int64_t elements = 0;
  for (const Value& value : graph.values()) {
    const std::int64_t more = value.type.element_count();
    if (more > most_elements - elements) return false;
    elements += more;
  }
  return true;
}

Tensor small_numbers(const TensorType& type) {
  Tensor tensor(type.dtype, type.dims());
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, static_cast<double>(i % 3));
  return tensor;
}

/// Values for all inputs of the model; nothing when some are not tensors of known shape.
std::optional<std::vector<HostValue>> inputs_of(const ImportedModel& model) {
  std::vector<HostValue> inputs;
  const auto add = [&](ValueId id) { inputs.emplace_back(small_numbers(model.graph.type(id))); };
  if (model.host == nullptr) {
    std::ranges::for_each(model.graph.inputs, add);
    return inputs;
  }
  for (const ModelPort& port : model.host->inputs()) {
    const auto found = std::ranges::find_if(
        model.graph.inputs, [&](ValueId id) { return model.graph.value(id).name == port.name; });
    if (found == model.graph.inputs.end()) return std::nullopt;
    add(*found);
  }
  return inputs;
}

}  // namespace

std::string try_model(std::string_view bytes) {
  try {
    ImportOptions options;
    options.max_nodes = most_nodes;
    options.host_bytes = host_bytes;
    options.host_work = host_work;
    const ImportedModel model = import_model_bytes(bytes, "", options);
    const Plan plan = lower(run_passes(model.graph));
    if (!is_tiny(model.graph)) return "";
    std::vector<Tensor> tensors;
    tensors.reserve(model.graph.inputs.size());
    for (const ValueId id : model.graph.inputs) tensors.push_back(small_numbers(model.graph.type(id)));
    (void)interpret_plan(plan, tensors);
    if (const auto inputs = inputs_of(model)) (void)interpret(model, *inputs);
    return "";
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) throw;
    return error.what();
  }
}

}  // namespace sylvite::fuzz
