#include "frontend/onnx/missing_shapes.h"

#include <onnx-ml.pb.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "frontend/onnx/reader_facts.h"

namespace sylvite {
namespace {

bool lacks_shape(const onnx::ValueInfoProto& input) {
  const onnx::TypeProto& type = input.type();
  return type.has_tensor_type() && !type.tensor_type().has_shape() &&
         type.tensor_type().elem_type() != onnx::TensorProto::STRING;
}

}  // namespace

void open_default_inputs(onnx::GraphProto& graph, const ImportOptions& options) {
  if (options.input_shapes.empty()) return;
  const auto is_opened = [&](const std::string& name) {
    return options.input_shapes.contains(name) &&
           std::ranges::find(graph.input(), name, &onnx::ValueInfoProto::name) != graph.input().end();
  };
  const auto erase_opened = [&](auto& list, const auto& name_of) {
    const auto end = std::remove_if(list.begin(), list.end(),
                                    [&](const auto& tensor) { return is_opened(name_of(tensor)); });
    list.erase(end, list.end());
  };
  erase_opened(*graph.mutable_initializer(), [](const onnx::TensorProto& tensor) { return tensor.name(); });
  erase_opened(*graph.mutable_sparse_initializer(),
               [](const onnx::SparseTensorProto& tensor) { return tensor.values().name(); });
}

void declare_missing_shapes(onnx::GraphProto& graph, const ImportOptions& options) {
  if (std::ranges::none_of(graph.input(), lacks_shape)) return;
  const ReaderFactFinder finder(graph);
  std::set<std::string> defaults;
  for (const onnx::TensorProto& tensor : graph.initializer()) defaults.insert(tensor.name());
  for (onnx::ValueInfoProto& input : *graph.mutable_input()) {
    if (!lacks_shape(input) || defaults.contains(input.name()) || options.bound_inputs.contains(input.name()))
      continue;
    const auto given = options.input_shapes.find(input.name());
    const bool is_given = given != options.input_shapes.end();
    const std::optional<int> rank =
        is_given ? static_cast<int>(given->second.size()) : finder.facts_of(input.name()).rank;
    if (!rank) continue;
    auto* shape = input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int axis = 0; axis < *rank; ++axis) {
      auto* dim = shape->add_dim();
      if (is_given) dim->set_dim_value(given->second[static_cast<std::size_t>(axis)]);
    }
  }
}

}  // namespace sylvite
