#include "frontend/onnx/traced_sizes.h"

#include <onnx-ml.pb.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "frontend/onnx/imported_model.h"
#include "frontend/onnx/tensor.h"

namespace sylvite {
namespace {

using Counts = std::map<std::int64_t, int>;

void count_numbers(const onnx::TensorProto& tensor, Counts& counts) {
  constexpr std::int64_t longest = 8;
  constexpr std::int64_t largest = 4096;
  const bool is_long = tensor.dims_size() > 1 || (tensor.dims_size() == 1 && tensor.dims(0) > longest);
  if (tensor.data_type() != onnx::TensorProto::INT64 || is_long ||
      tensor.data_location() == onnx::TensorProto::EXTERNAL)
    return;
  try {
    const Tensor numbers = decode_tensor(tensor, ExternalData(DataFolder{}));
    for (const std::int64_t number : numbers.to_int64s())
      if (number > 1 && number <= largest) ++counts[number];
  } catch (const Error&) {
    return;  // the import says what is wrong with it
  }
}

}  // namespace

std::vector<std::int64_t> traced_sizes(const ParsedModel& model) {
  constexpr std::size_t most = 24;
  Counts counts;
  const onnx::GraphProto& graph = model.proto->graph();
  for (const onnx::TensorProto& tensor : graph.initializer()) count_numbers(tensor, counts);
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() != "Constant") continue;
    for (const onnx::AttributeProto& attribute : node.attribute()) count_numbers(attribute.t(), counts);
  }
  std::vector<std::pair<std::int64_t, int>> rows(counts.begin(), counts.end());
  std::ranges::stable_sort(rows, std::ranges::greater{}, [](const auto& row) { return row.second; });
  std::vector<std::int64_t> sizes;
  for (const auto& [number, count] : rows)
    if (sizes.size() < most) sizes.push_back(number);
  return sizes;
}

std::vector<Dims> first_weights(const ParsedModel& model) {
  constexpr std::size_t most = 16;
  std::map<std::string, const onnx::TensorProto*> weights;
  const onnx::GraphProto& graph = model.proto->graph();
  for (const onnx::TensorProto& tensor : graph.initializer())
    if (tensor.dims_size() > 0) weights[tensor.name()] = &tensor;
  std::vector<Dims> shapes;
  for (const onnx::NodeProto& node : graph.node()) {
    for (const std::string& name : node.input()) {
      const auto weight = weights.find(name);
      if (weight == weights.end()) continue;
      const auto& dims = weight->second->dims();
      shapes.emplace_back(dims.begin(), dims.end());
      if (shapes.size() == most) return shapes;
    }
  }
  return shapes;
}

}  // namespace sylvite
