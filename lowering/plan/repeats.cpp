#include "lowering/plan/repeats.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "lowering/plan/fusion_rules.h"

namespace sylvite {
namespace {

bool takes_most(const Graph& graph, const Node& node) {
  return node.op == Op::slice &&
         graph.type(node.outputs[0]).element_count() * 2 > graph.type(node.inputs[0]).element_count();
}

/// How often an element of the node's result is computed.
int computed_times(const Graph& graph, const std::set<NodeId>& kernel, NodeId id,
                   const IdMap<std::vector<NodeId>>& readers) {
  constexpr int most = 1 << 20;
  std::map<NodeId, int> times;
  const auto count = [&](NodeId each) {
    int in_place = 0, by_slices = 0;
    for (const ValueId output : graph.node(each).outputs) {
      const std::set<NodeId> distinct(readers[output].begin(), readers[output].end());
      for (const NodeId reader : distinct) {
        const auto found = times.find(reader);
        if (found == times.end()) continue;
        if (takes_most(graph, graph.node(reader)))
          by_slices = std::min(most, by_slices + found->second);
        else
          in_place = std::max(in_place, found->second);
      }
    }
    return std::max(1, in_place + by_slices);
  };
  for (auto each = kernel.rbegin(); each != kernel.rend() && *each > id; ++each) times[*each] = count(*each);
  return count(id);
}

/// Operations in a row that lead to the node without a change of size, at most `most`.
int work_behind(const Graph& graph, NodeId id, int most) {
  const std::int64_t elements = graph.type(graph.node(id).outputs[0]).element_count();
  std::set<NodeId> work;
  for (std::vector<NodeId> left = {id}; !left.empty() && static_cast<int>(work.size()) < most;) {
    const Node& node = graph.node(left.back());
    if (role_of(node) == Role::pointwise) work.insert(left.back());
    left.pop_back();
    for (const ValueId input : node.inputs) {
      const NodeId producer = input == no_value ? no_node : graph.value(input).producer;
      if (producer == no_node || work.contains(producer) || role_of(graph.node(producer)) == Role::anchor)
        continue;
      if (graph.type(input).element_count() == elements) left.push_back(producer);
    }
  }
  return static_cast<int>(work.size());
}

}  // namespace

bool is_shared_work(const Graph& graph, NodeId root, NodeId id) {
  constexpr std::int64_t many = 16, least_elements = 1 << 15, least_shared = 64;
  constexpr int least_work = 4;
  const std::int64_t shared = graph.type(graph.node(id).outputs[0]).element_count();
  const std::int64_t all = graph.type(graph.node(root).outputs[0]).element_count();
  return role_of(graph.node(id)) == Role::pointwise && shared >= least_shared && all >= least_elements &&
         all >= many * shared && work_behind(graph, id, least_work) == least_work;
}

bool repeats_too_often(const Graph& graph, const std::set<NodeId>& kernel, NodeId id,
                       const IdMap<std::vector<NodeId>>& readers) {
  constexpr int too_often = 4;
  constexpr std::int64_t least_bytes = 1 << 20;
  return role_of(graph.node(id)) == Role::pointwise &&
         graph.type(graph.node(id).outputs[0]).byte_size() >= least_bytes &&
         computed_times(graph, kernel, id, readers) >= too_often;
}

}  // namespace sylvite
