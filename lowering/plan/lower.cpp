// Graph -> Plan: groups become kernels, values become buffers.

#include <map>
#include <set>

#include "base/error.h"
#include "lowering/passes/pass_list.h"
#include "lowering/plan/fusion.h"
#include "lowering/plan/group_body.h"
#include "lowering/plan/memory_plan.h"
#include "lowering/plan/plan.h"
#include "lowering/plan/plan_verifier.h"

namespace sylvite {
namespace {

class PlanBuilder {
 public:
  PlanBuilder(const Graph& graph, const Joins& joins) : graph_(graph), joins_(joins) {
    plan_.name = graph.name;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const BufferId id = add_buffer(graph.inputs[i], BufferKind::input, static_cast<std::int32_t>(i));
      plan_.inputs.push_back({buffer(id).name, buffer(id).type, id});
    }
  }

  void add_launch(const Group& group) {
    GroupBody body = body_of(graph_, group);
    Launch launch;
    for (ValueId input : body.inputs) launch.arguments.push_back(buffer_of(input));
    for (ValueId output : group.outputs) launch.arguments.push_back(add_result(output));
    launch.name = graph_.value(group.outputs[0]).name;
    launch.reason = group.reason;
    plan_.launches.push_back(std::move(launch));
    bodies_.push_back(std::move(body));
  }

  /// Where each value lies, which needs no kernels. REQUIRES all launches added.
  void place(bool reuse_memory) {
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      const BufferId id = buffer_of(graph_.outputs[i]);
      plan_.outputs.push_back({graph_.output_name(i), buffer(id).type, id});
      const BufferId root_id = root_of(plan_, id);
      Buffer& root = buffer(root_id);
      if (root.kind == BufferKind::arena && !wholes_.contains(root_id)) {
        root.kind = BufferKind::output;
        root.index = static_cast<std::int32_t>(i);
      }
    }
    for (Buffer& alias : plan_.buffers) {
      if (alias.alias_of < 0) continue;
      const Buffer& root = buffer(root_of(plan_, alias.alias_of));
      alias.kind = root.kind;
      alias.index = root.index;
    }
    place_buffers(plan_, reuse_memory);
  }

  [[nodiscard]] std::int64_t arena_bytes() const { return plan_.arena_bytes; }

  /// REQUIRES place().
  [[nodiscard]] Plan finish() {
    for (std::size_t i = 0; i < bodies_.size(); ++i) add_kernel(plan_.launches[i], bodies_[i]);
    return std::move(plan_);
  }

 private:
  void add_kernel(Launch& launch, const GroupBody& group) {
    Kernel kernel = make_kernel(group.body, group.is_weight);
    const NodeId named = kernel.anchor == no_node ? group.nodes.back()
                                                  : group.nodes.at(static_cast<std::size_t>(kernel.anchor));
    if (!graph_.node(named).name.empty()) launch.name = graph_.node(named).name;
    launch.kernel = unique_kernel(std::move(kernel));
  }

  Buffer& buffer(BufferId id) { return plan_.buffers[static_cast<std::size_t>(id)]; }

  BufferId add_buffer(ValueId id, BufferKind kind, std::int32_t index) {
    Buffer added;
    added.name = graph_.value(id).name;
    added.type = graph_.type(id);
    added.kind = kind;
    added.index = index;
    plan_.buffers.push_back(std::move(added));
    return buffer_by_value_[id] = static_cast<BufferId>(plan_.buffers.size() - 1);
  }

  BufferId add_weight(ValueId id, const Tensor& tensor) {
    plan_.weights.push_back(tensor);
    return add_buffer(id, BufferKind::weight, static_cast<std::int32_t>(plan_.weights.size() - 1));
  }

  /// The buffer of a value that a launch writes.
  BufferId add_result(ValueId id) {
    return joins_.parts.contains(id) ? add_part(id) : add_buffer(id, BufferKind::arena, 0);
  }

  BufferId add_part(ValueId id) {
    const Part& part = joins_.parts.at(id);
    const auto found = buffer_by_value_.find(part.whole);
    const BufferId whole =
        found != buffer_by_value_.end() ? found->second : add_buffer(part.whole, BufferKind::arena, 0);
    wholes_.insert(whole);
    const BufferId added = add_buffer(id, BufferKind::arena, 0);
    buffer(added).alias_of = whole;
    buffer(added).alias_offset = part.offset;
    return added;
  }

  BufferId buffer_of(ValueId id) {
    if (const auto found = buffer_by_value_.find(id); found != buffer_by_value_.end()) return found->second;
    if (joins_.parts.contains(id)) return add_part(id);
    const Value& value = graph_.value(id);
    if (value.constant) return add_weight(id, *value.constant);
    if (value.producer == no_node || !is_free(graph_, graph_.node(value.producer)))
      throw InternalError("lowering: '{}' is read but no launch writes it", value.name);
    const BufferId source = buffer_of(graph_.node(value.producer).inputs[0]);
    if (buffer(source).kind == BufferKind::weight) {
      const Tensor weight = plan_.weights[static_cast<std::size_t>(buffer(source).index)];
      return add_weight(id, weight.reshaped(value.type.dims()));
    }
    const BufferId alias = add_buffer(id, BufferKind::arena, 0);
    buffer(alias).alias_of = source;
    return alias;
  }

  std::int32_t unique_kernel(Kernel kernel) {
    const auto [entry, added] =
        kernel_by_text_.try_emplace(kernel.text, static_cast<std::int32_t>(plan_.kernels.size()));
    if (added) plan_.kernels.push_back(std::move(kernel));
    return entry->second;
  }

  const Graph& graph_;
  const Joins& joins_;
  Plan plan_;
  std::vector<GroupBody> bodies_;  ///< per launch
  std::set<BufferId> wholes_;      ///< joined concats
  std::map<ValueId, BufferId> buffer_by_value_;
  std::map<std::string, std::int32_t> kernel_by_text_;
};

PlanBuilder place_launches(const Graph& graph, const Joins& joins, const LoweringOptions& options) {
  PlanBuilder builder(graph, joins);
  for (const Group& group : group_nodes(graph, joins, options)) builder.add_launch(group);
  builder.place(options.reuse_memory);
  return builder;
}

/// A joined concat keeps its whole place from its first part on, which may cost memory over a long span.
bool is_worth_joining(const PlanBuilder& joined, const PlanBuilder& apart) {
  return joined.arena_bytes() <= apart.arena_bytes() + apart.arena_bytes() / 4;
}

Plan plan_launches(const Graph& graph, const LoweringOptions& options) {
  const Joins none = no_joins(graph);
  PlanBuilder apart = place_launches(graph, none, options);
  const Joins joins = options.fuse && options.join_concats ? find_joins(graph) : none;
  if (joins.empty()) return apart.finish();
  PlanBuilder joined = place_launches(graph, joins, options);
  return is_worth_joining(joined, apart) ? joined.finish() : apart.finish();
}

}  // namespace

Plan lower(const Graph& graph, const LoweringOptions& options, PassRunner& runner) {
  const Graph laid_out = runner.run(lowering_passes(), graph, options);
  Plan plan = plan_launches(laid_out, options);
  verify(plan);
  return plan;
}

Plan lower(const Graph& graph, const LoweringOptions& options) {
  PassRunner runner;
  return lower(graph, options, runner);
}

}  // namespace sylvite
