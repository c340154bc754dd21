#include "lowering/plan/plan_builder.h"

#include <algorithm>

#include "base/error.h"
#include "frontend/ops/op_table.h"
#include "lowering/plan/loop_order.h"
#include "lowering/plan/memory_plan.h"
#include "lowering/plan/state_keeper.h"

namespace sylvite {
namespace {

/// in0 [rows, from] -> [rows, to]: rows are cut, or padded with zeros.
Kernel copy_kernel(DType dtype, std::int64_t rows, std::int64_t from, std::int64_t to) {
  Graph body;
  const ValueId in = body.add_input("", make_type(dtype, {rows, from}));
  const Attributes cut{{"starts", Dims{0, 0}}, {"sizes", Dims{rows, to}}, {"steps", Dims{1, 1}}};
  const Attributes padded{{"low", Dims{0, 0}}, {"high", Dims{0, to - from}}};
  body.outputs = {to > from ? body.add(Op::pad, {in}, padded) : body.add(Op::slice, {in}, cut)};
  return make_kernel(body, {false});
}

}  // namespace

PlanBuilder::PlanBuilder(const Graph& graph, const Joins& joins) : graph_(graph), joins_(joins) {
  plan_.name = graph.name;
  const std::vector<bool> is_state = graph.state_inputs();
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    if (!is_state[i]) add_port(plan_.inputs, graph.inputs[i], BufferKind::input);
  for (const State& state : graph.states)
    add_port(plan_.states, graph.inputs[state.input], BufferKind::state);
}

void PlanBuilder::add_port(std::vector<Port>& ports, ValueId value, BufferKind kind) {
  const BufferId id = add_value(value, kind, static_cast<std::int32_t>(ports.size()));
  ports.push_back({buffer(id).name, buffer(id).type, id});
}

void PlanBuilder::add_launch(const Group& group) {
  GroupBody body = body_of(graph_, group);
  Launch launch;
  for (ValueId input : body.inputs) launch.arguments.push_back(buffer_of(input));
  for (ValueId output : group.outputs) launch.arguments.push_back(add_result(output));
  launch.name = graph_.value(group.outputs[0]).name;
  launch.reason = group.reason;
  plan_.launches.push_back(std::move(launch));
  origins_.push_back({std::move(body), std::nullopt});
}

void PlanBuilder::add_launch(Launch launch, Kernel kernel) {
  plan_.launches.push_back(std::move(launch));
  origins_.push_back({{}, std::move(kernel)});
}

void PlanBuilder::add_copy(BufferId from, BufferId to, std::int64_t rows, const std::string& reason) {
  const TensorType source = buffer(from).type;
  const TensorType target = buffer(to).type;
  const auto columns = [&](const TensorType& type) {
    return type.element_count() / std::max<std::int64_t>(rows, 1);
  };
  const auto as_rows = [&](BufferId id, const TensorType& type) {
    return add_view(id, buffer(id).name + "_rows", make_type(type.dtype, {rows, columns(type)}));
  };
  Launch launch;
  launch.arguments = {as_rows(from, source), as_rows(to, target)};
  launch.name = buffer(to).name;
  launch.reason = reason;
  add_launch(std::move(launch), copy_kernel(source.dtype, rows, columns(source), columns(target)));
}

std::size_t PlanBuilder::input_count(std::size_t launch) const {
  const Origin& origin = origins_[launch];
  return origin.kernel ? origin.kernel->body.inputs.size() : origin.group.inputs.size();
}

void PlanBuilder::bring_loops_together() {
  if (plan_.loops.size() < 2) return;
  std::vector<std::size_t> inputs;
  inputs.reserve(origins_.size());
  for (std::size_t i = 0; i < origins_.size(); ++i) inputs.push_back(input_count(i));
  LoopOrder order = order_loops(plan_, inputs);
  std::vector<Launch> launches;
  std::vector<Origin> origins;
  for (const std::size_t number : order.launches) {
    launches.push_back(std::move(plan_.launches[number]));
    origins.push_back(std::move(origins_[number]));
  }
  plan_.launches = std::move(launches);
  origins_ = std::move(origins);
  plan_.loops = std::move(order.loops);
}

void PlanBuilder::place(bool reuse_memory) {
  bring_loops_together();
  const std::vector<bool> is_next = graph_.state_outputs();
  for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
    if (is_next[i]) continue;
    const BufferId id = buffer_of(graph_.outputs[i]);
    const BufferId root_id = root_of(plan_, id);
    Buffer& root = buffer(root_id);
    if (root.kind == BufferKind::arena && !wholes_.contains(root_id)) {
      root.kind = BufferKind::output;
      root.index = static_cast<std::int32_t>(plan_.outputs.size());
    }
    plan_.outputs.push_back({graph_.output_name(i), buffer(id).type, id});
  }
  std::vector<BufferId> next;
  next.reserve(graph_.states.size());
  for (const State& state : graph_.states) next.push_back(buffer_of(graph_.outputs[state.output]));
  StateKeeper(*this, next).run();
  for (Buffer& alias : plan_.buffers) {
    if (alias.alias_of < 0) continue;
    const Buffer& root = buffer(root_of(plan_, alias.alias_of));
    alias.kind = root.kind;
    alias.index = root.index;
  }
  place_buffers(plan_, reuse_memory);
}

Plan PlanBuilder::finish() {
  for (std::size_t i = 0; i < origins_.size(); ++i) add_kernel(plan_.launches[i], origins_[i]);
  return std::move(plan_);
}

void PlanBuilder::add_kernel(Launch& launch, Origin& origin) {
  if (origin.kernel) {
    launch.kernel = unique_kernel(std::move(*origin.kernel));
    return;
  }
  const GroupBody& group = origin.group;
  Kernel kernel = make_kernel(group.body, group.is_weight);
  const NodeId named =
      kernel.anchor == no_node ? group.nodes.back() : group.nodes.at(static_cast<std::size_t>(kernel.anchor));
  if (!graph_.node(named).name.empty()) launch.name = graph_.node(named).name;
  launch.kernel = unique_kernel(std::move(kernel));
}

BufferId PlanBuilder::add_buffer(Buffer added) {
  plan_.buffers.push_back(std::move(added));
  return static_cast<BufferId>(plan_.buffers.size() - 1);
}

BufferId PlanBuilder::add_value(ValueId id, BufferKind kind, std::int32_t index) {
  Buffer added;
  added.name = graph_.value(id).name;
  added.type = graph_.type(id);
  added.kind = kind;
  added.index = index;
  return buffer_by_value_[id] = add_buffer(std::move(added));
}

BufferId PlanBuilder::add_weight(const std::string& name, const Tensor& tensor) {
  plan_.weights.push_back(tensor);
  Buffer added;
  added.name = name;
  added.type = tensor.type();
  added.kind = BufferKind::weight;
  added.index = static_cast<std::int32_t>(plan_.weights.size() - 1);
  return add_buffer(std::move(added));
}

BufferId PlanBuilder::add_view(BufferId source, const std::string& name, const TensorType& type) {
  if (buffer(source).kind == BufferKind::weight) {
    const Tensor weight = plan_.weights[static_cast<std::size_t>(buffer(source).index)];
    const BufferId added = add_weight(name, weight.reshaped(type.dims()));
    buffer(added).type = type;
    return added;
  }
  Buffer added;
  added.name = name;
  added.type = type;
  added.alias_of = source;
  return add_buffer(std::move(added));
}

/// The buffer of a value that a launch writes.
BufferId PlanBuilder::add_result(ValueId id) {
  const Node& node = graph_.node(graph_.value(id).producer);
  if (writes_in_place(node.op))
    return buffer_by_value_[id] = add_view(buffer_of(node.inputs[0]), graph_.value(id).name, graph_.type(id));
  return joins_.parts.contains(id) ? add_part(id) : add_value(id, BufferKind::arena, 0);
}

BufferId PlanBuilder::add_part(ValueId id) {
  const Part& part = joins_.parts.at(id);
  const auto found = buffer_by_value_.find(part.whole);
  const BufferId whole =
      found != buffer_by_value_.end() ? found->second : add_value(part.whole, BufferKind::arena, 0);
  wholes_.insert(whole);
  const BufferId added = add_value(id, BufferKind::arena, 0);
  buffer(added).alias_of = whole;
  buffer(added).alias_offset = part.offset;
  return added;
}

BufferId PlanBuilder::buffer_of(ValueId id) {
  if (const auto found = buffer_by_value_.find(id); found != buffer_by_value_.end()) return found->second;
  if (joins_.parts.contains(id)) return add_part(id);
  const Value& value = graph_.value(id);
  if (value.constant) {
    const BufferId added = add_weight(value.name, *value.constant);
    buffer(added).type = value.type;
    return buffer_by_value_[id] = added;
  }
  if (value.producer == no_node || !is_free(graph_, graph_.node(value.producer)))
    throw InternalError("lowering: '{}' is read but no launch writes it", value.name);
  const BufferId source = buffer_of(graph_.node(value.producer).inputs[0]);
  return buffer_by_value_[id] = add_view(source, value.name, value.type);
}

std::int32_t PlanBuilder::unique_kernel(Kernel kernel) {
  const auto [entry, added] =
      kernel_by_text_.try_emplace(kernel.text, static_cast<std::int32_t>(plan_.kernels.size()));
  if (added) plan_.kernels.push_back(std::move(kernel));
  return entry->second;
}

}  // namespace sylvite
