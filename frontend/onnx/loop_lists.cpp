#include "frontend/onnx/loop_lists.h"

#include <onnx-ml.pb.h>

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/onnx/node_order.h"

namespace sylvite {
namespace {

bool is_appended(const onnx::GraphProto& body, const std::string& list, const std::string& result) {
  std::int64_t appends = 0;
  for (const onnx::NodeProto& node : body.node()) {
    if (!names_read(node).contains(list)) continue;
    const bool appends_once = node.op_type() == "SequenceInsert" && node.input_size() == 2 &&
                              node.input(0) == list && node.input(1) != list && node.output(0) == result;
    if (!appends_once) return false;
    ++appends;
  }
  const auto is_list = [&](const onnx::ValueInfoProto& output) { return output.name() == list; };
  return appends == 1 && std::none_of(body.output().begin(), body.output().end(), is_list);
}

/// Whose element `i` along the first axis it is; no_value where it is none.
ValueId source_of_element(const Graph& graph, ValueId id, std::int64_t i) {
  const Node* reshape = producer_if(graph, id, Op::reshape);
  const Node* slice = reshape == nullptr ? nullptr : producer_if(graph, reshape->inputs[0], Op::slice);
  if (slice == nullptr || !graph.type(slice->inputs[0]).is_known()) return no_value;
  Dims dims = graph.type(slice->inputs[0]).dims();
  if (Dims(dims.begin() + 1, dims.end()) != graph.type(id).dims()) return no_value;
  dims[0] = 1;
  const std::vector<Extent> starts = slice->attributes.extents("starts");
  const std::vector<std::int64_t> steps = slice->attributes.integers("steps");
  if (graph.type(reshape->inputs[0]).dims() != dims || starts[0] != Extent(i) ||
      std::ranges::any_of(steps, [](std::int64_t step) { return step != 1; }))
    return no_value;
  return slice->inputs[0];
}

}  // namespace

std::vector<bool> appended_states(const onnx::GraphProto& body) {
  std::vector<bool> appended;
  for (int i = 2; i < body.input_size(); ++i)
    appended.push_back(i - 1 < body.output_size() &&
                       is_appended(body, body.input(i).name(), body.output(i - 1).name()));
  return appended;
}

OnnxBinding with_appended(const OnnxBinding& list, Sym stacked) {
  std::vector<ValueId> values = *list.sequence;
  for (std::int64_t i = 0; i < stacked.dim(0); ++i)
    values.push_back(squeeze(slice(stacked, 0, i, i + 1), {0}).id());
  OnnxBinding longer;
  longer.sequence = std::make_shared<const std::vector<ValueId>>(std::move(values));
  return longer;
}

std::optional<Sym> stacked_values(GraphBuilder& builder, const std::vector<Sym>& values) {
  const Graph& graph = builder.graph();
  const auto source = [&](std::size_t i) {
    return source_of_element(graph, values[i].id(), static_cast<std::int64_t>(i));
  };
  if (values.size() < 2 || source(0) == no_value) return std::nullopt;
  const Sym whole(builder, source(0));
  if (whole.dim(0) != static_cast<std::int64_t>(values.size())) return std::nullopt;
  for (std::size_t i = 1; i < values.size(); ++i)
    if (source(i) != whole.id()) return std::nullopt;
  return whole;
}

}  // namespace sylvite
