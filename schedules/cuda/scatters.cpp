#include "schedules/cuda/scatters.h"

#include <algorithm>

#include "frontend/graph/rewrite.h"

namespace sylvite {
namespace {

constexpr ScatterFold folds[] = {
    {"add", "a + b", "a + b", "0.f"},
    {"mul", "a * b", "a * b", "1.f"},
    {"max", "nan_max(a, b)", "a < b ? b : a", "__int_as_float(0xff800000)"},
    {"min", "nan_min(a, b)", "b < a ? b : a", "__int_as_float(0x7f800000)"},
};

}  // namespace

const ScatterFold* scatter_fold_named(std::string_view reduction) {
  const auto* const found = std::ranges::find(folds, reduction, &ScatterFold::reduction);
  return found == std::end(folds) ? nullptr : found;
}

const Node* scatter_of(const Kernel& kernel) {
  const Graph& body = kernel.body;
  if (body.nodes().empty() || body.outputs.size() != 1) return nullptr;
  const Node& node = body.nodes().back();
  const bool is_scatter = node.op == Op::scatter_elements || node.op == Op::scatter_nd;
  return is_scatter && node.outputs[0] == body.outputs[0] ? &node : nullptr;
}

std::optional<double> number_of(const Graph& body, ValueId id) {
  const Node* view = producer_if(body, id, Op::broadcast_to);
  return view == nullptr ? std::nullopt : scalar_constant(body, view->inputs[0]);
}

std::string refuse_scatter_types(const Graph& body, const Node& scatter) {
  constexpr std::int64_t most_extent = 1LL << 30;  // numbered by int
  const DType index = body.type(scatter.inputs[1]).dtype;
  if (index != DType::i64 && index != DType::i32) return "its indices are neither i32 nor i64";
  for (const ValueId id : {scatter.inputs[0], scatter.inputs[1], scatter.inputs[2]}) {
    const TensorType& type = body.type(id);
    if (type.layout.channel_block != 0) return "channels lie in blocks";
    if (type.element_count() == 0) return "it is empty";
    if (type.element_count() > most_extent) return "the extents are large";
  }
  return "";
}

}  // namespace sylvite
