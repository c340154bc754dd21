#include "frontend/onnx/loop_lists.h"

#include <onnx-ml.pb.h>

#include <algorithm>
#include <set>

#include "frontend/graph/rewrite.h"
#include "frontend/onnx/node_order.h"

namespace sylvite {
namespace {

bool puts_behind(const onnx::NodeProto& node) {
  if (node.op_type() == "SequenceInsert") return node.input_size() == 2;
  return node.op_type() == "Concat" && node.input_size() == 2 && node.domain().empty() &&
         std::ranges::any_of(node.attribute(), [](const onnx::AttributeProto& attribute) {
           return attribute.name() == "axis" && attribute.i() == 0;
         });
}

/// Is the state's only reader a node `op` that puts something behind it?
bool is_appended(const onnx::GraphProto& body, const std::string& op, const std::string& state,
                 const std::string& result) {
  std::int64_t appends = 0;
  for (const onnx::NodeProto& node : body.node()) {
    const std::set<std::string> read = names_read(node);
    if (op == "Concat" && read.contains(result)) return false;
    if (!read.contains(state)) continue;
    const bool appends_once = node.op_type() == op && puts_behind(node) && node.input(0) == state &&
                              node.input(1) != state && node.output(0) == result;
    if (!appends_once) return false;
    ++appends;
  }
  const auto times = [&](const std::string& name) {
    return std::ranges::count(body.output(), name, &onnx::ValueInfoProto::name);
  };
  return appends == 1 && times(state) == 0 && (op != "Concat" || times(result) == 1);
}

std::vector<bool> states_behind(const onnx::GraphProto& body, const std::string& op) {
  std::vector<bool> appended;
  for (int i = 2; i < body.input_size(); ++i)
    appended.push_back(i - 1 < body.output_size() &&
                       is_appended(body, op, body.input(i).name(), body.output(i - 1).name()));
  return appended;
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
  return states_behind(body, "SequenceInsert");
}

CarriedStates::CarriedStates(const onnx::GraphProto& body, std::vector<OnnxBinding> first)
    : now_(std::move(first)), grows_(states_behind(body, "Concat")), rows_(now_.size()) {
  grows_.resize(now_.size());
}

void CarriedStates::take(ImportContext& c, const std::vector<OnnxBinding>& results) {
  for (std::size_t i = 0; i < now_.size(); ++i) {
    if (!grows_[i] || !now_[i].is_tensor()) {
      now_[i] = results[i + 1];
      continue;
    }
    const Sym longer = c.symbol(results[i + 1]);
    rows_[i].push_back(slice(longer, 0, c.symbol(now_[i]).dim(0), longer.dim(0)));
  }
}

std::vector<OnnxBinding> CarriedStates::last(ImportContext& c) const {
  std::vector<OnnxBinding> states = now_;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (rows_[i].empty()) continue;
    std::vector<Sym> parts{c.symbol(states[i])};
    parts.insert(parts.end(), rows_[i].begin(), rows_[i].end());
    states[i] = OnnxBinding::of(concat(parts, 0).id());
  }
  return states;
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
