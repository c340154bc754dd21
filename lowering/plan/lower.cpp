// Graph -> Plan: groups become kernels, values become buffers.

#include <map>

#include "base/error.h"
#include "lowering/passes/pass_list.h"
#include "lowering/plan/plan.h"
#include "lowering/plan/plan_builder.h"
#include "lowering/plan/plan_verifier.h"

namespace sylvite {
namespace {

using LoopBodies = std::map<NodeId, Plan>;  ///< per loop: its body

Plan plan_launches(const Graph& graph, const LoweringOptions& options);

LoopBodies plan_bodies(const Graph& graph, const LoweringOptions& options) {
  LoopBodies bodies;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.op != Op::loop) continue;
    Plan body = plan_launches(node.attributes.graph("body"), options);
    if (!body.loops.empty()) throw UnsupportedError("loop '{}' has a loop in its body", node.name);
    bodies.emplace(static_cast<NodeId>(i), std::move(body));
  }
  return bodies;
}

PlanBuilder place_launches(const Graph& graph, const Joins& joins, const LoopBodies& bodies,
                           const LoweringOptions& options) {
  PlanBuilder builder(graph, joins);
  for (const Group& group : group_nodes(graph, joins, options)) {
    const auto body = bodies.find(group.nodes[0]);
    if (body == bodies.end())
      builder.add_launch(group);
    else
      builder.add_loop(graph.node(body->first), body->second);
  }
  builder.place(options.reuse_memory);
  return builder;
}

/// A joined concat keeps its whole place from its first part on, which may cost memory over a long span.
bool is_worth_joining(const PlanBuilder& joined, const PlanBuilder& apart) {
  return joined.arena_bytes() <= apart.arena_bytes() + apart.arena_bytes() / 4;
}

Plan plan_launches(const Graph& graph, const LoweringOptions& options) {
  const Joins none = no_joins(graph);
  const LoopBodies bodies = plan_bodies(graph, options);
  PlanBuilder apart = place_launches(graph, none, bodies, options);
  const Joins joins = options.fuse && options.join_concats ? find_joins(graph) : none;
  if (joins.empty()) return apart.finish();
  PlanBuilder joined = place_launches(graph, joins, bodies, options);
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
