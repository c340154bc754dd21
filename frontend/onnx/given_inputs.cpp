#include "frontend/onnx/given_inputs.h"

#include <fmt/ranges.h>
#include <onnx-ml.pb.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"

namespace sylvite {

void check_given_inputs(const onnx::GraphProto& graph, const ImportOptions& options) {
  std::vector<std::string_view> inputs;
  for (const auto& input : graph.input()) inputs.emplace_back(input.name());
  const auto check = [&](const std::string& name) {
    if (std::ranges::find(inputs, name) != inputs.end()) return;
    const std::string all =
        inputs.empty() ? "it has no inputs" : fmt::format("its inputs: {}", fmt::join(inputs, ", "));
    throw UsageError("the model has no input '{}'{} ({})", name, suggestion(name, inputs), all);
  };
  for (const auto& [name, shape] : options.input_shapes) check(name);
  for (const auto& [name, tensor] : options.bound_inputs) check(name);
}

}  // namespace sylvite
