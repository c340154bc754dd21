// A state whose next value is the last one with some elements replaced, as a cache of keys is, is not copied: the
// elements are written where the state lies. So are those of an input that the caller writes its next value over.
//
//   before: next = scatter_elements(past, indices, updates)    past, next: a state
//   after:  next = write_elements(past, indices, updates)
//
// Only where nothing else reads the last value: then no read of it can stand behind the write. Reshapes and several
// scatters may stand between the two. What is no scatter but replaces entries along an axis: entry_writes.h; states
// of another type than what is computed with: wide_writes.h.

#include <algorithm>
#include <map>
#include <set>

#include "frontend/graph/rewrite.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/entry_writes.h"
#include "lowering/passes/pass_list.h"
#include "lowering/passes/wide_writes.h"

namespace sylvite {
namespace {

bool is_scatter(Op op) {
  return op == Op::scatter_elements || op == Op::scatter_nd;
}

/// The scatters between the value of a state and its next value; empty where the state is not written in place.
std::set<NodeId> scatters_of(const Graph& graph, const State& state,
                             const IdMap<std::vector<NodeId>>& readers) {
  const std::set<ValueId> outputs(graph.outputs.begin(), graph.outputs.end());
  const ValueId past = graph.inputs.at(state.input);
  std::set<NodeId> scatters;
  ValueId at = graph.outputs.at(state.output);
  while (at != past) {
    const NodeId producer = graph.value(at).producer;
    if (producer == no_node || graph.type(at).layout != Layout{}) return {};
    const Node& node = graph.node(producer);
    const bool is_plain =
        is_scatter(node.op) && node.inputs.size() == 3;  // others have bounds of large parts
    if (!is_plain && node.op != Op::reshape) return {};
    if (is_scatter(node.op)) scatters.insert(producer);
    at = node.inputs[0];
    if (!scatters.empty() && (readers[at].size() != 1 || outputs.contains(at))) return {};
  }
  return scatters;
}

std::vector<State> pairs_of(const Graph& graph) {
  std::vector<State> pairs = graph.states;
  pairs.insert(pairs.end(), graph.overwrites.begin(), graph.overwrites.end());
  return pairs;
}

/// May an input be written by it? Not where elements are combined, which would be done twice if a run were given up behind it and
/// another one followed; and kernels that write all are faster at many updates.
bool may_write_input(const Graph& graph, const Node& node, bool on_device) {
  return node.attributes.string("reduction") == "none" && is_small_write(graph, node, on_device);
}

/// All scatters between inputs and what replaces them.
std::set<NodeId> written_scatters(const Graph& graph, bool on_device) {
  const IdMap<std::vector<NodeId>> readers = graph.uses();
  std::set<NodeId> all;
  for (const State& state : graph.states) all.merge(scatters_of(graph, state, readers));
  for (const State& pair : graph.overwrites) {
    std::set<NodeId> scatters = scatters_of(graph, pair, readers);
    const auto may_be_written = [&](NodeId id) { return may_write_input(graph, graph.node(id), on_device); };
    if (std::ranges::all_of(scatters, may_be_written)) all.merge(scatters);
  }
  return all;
}

}  // namespace

Graph write_states(const Graph& source, const LoweringOptions& options) {
  const bool on_device = options.refuse_template != nullptr;
  const Graph graph =
      write_entries(widen_writes(source, pairs_of(source), options), pairs_of(source), on_device);
  const std::set<NodeId> all = written_scatters(graph, on_device);
  if (all.empty()) return graph;
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    const auto number = static_cast<NodeId>(&node - graph.nodes().data());
    if (!all.contains(number)) return false;
    const Op op = node.op == Op::scatter_nd ? Op::write_nd : Op::write_elements;
    rewriter.replace(node, op, rewriter.mapped(node.inputs), node.attributes);
    return true;
  });
}

}  // namespace sylvite
