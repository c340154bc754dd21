// A state whose next value is the last one with some elements replaced, as a cache of keys is, is not copied: the
// elements are written where the state lies.
//
//   before: next = scatter_elements(past, indices, updates)    past, next: a state
//   after:  next = write_elements(past, indices, updates)
//
// Only where nothing else reads the last value: then no read of it can stand behind the write. Reshapes and several
// scatters may stand between the two.
//
//   before: next = where(iota == place, new, past)
//   after:  next = write_elements(past, place, new); where place is outside, what is there already is written
//
// place is one number, new has one entry along the axis of the iota.

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "frontend/graph/graph_builder.h"
#include "frontend/graph/rewrite.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/pass_list.h"

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
    if (!is_scatter(node.op) && node.op != Op::reshape) return {};
    if (is_scatter(node.op)) scatters.insert(producer);
    at = node.inputs[0];
    if (!scatters.empty() && (readers[at].size() != 1 || outputs.contains(at))) return {};
  }
  return scatters;
}

/// A value before it was given more dims of 1, or broadcast.
ValueId without_views(const Graph& graph, ValueId id) {
  while (true) {
    const Node* view = producer_if(graph, id, Op::broadcast_to);
    if (view == nullptr) view = producer_if(graph, id, Op::reshape);
    if (view == nullptr) return id;
    const std::int64_t before = graph.type(view->inputs[0]).element_count();
    if (view->op == Op::reshape || before < graph.type(id).element_count())
      id = view->inputs[0];
    else
      return id;
  }
}

/// 0, 1, 2, ...?
bool counts_up(const Graph& graph, ValueId id) {
  if (const Node* iota = producer_if(graph, id, Op::iota)) {
    const auto axis = static_cast<std::size_t>(iota->attributes.integer("axis"));
    return graph.type(id).dims().at(axis) == graph.type(id).element_count();
  }
  const std::optional<Tensor>& values = graph.value(id).constant;
  if (!values || is_float(values->dtype())) return false;
  for (std::int64_t i = 0; i < values->size(); ++i)
    if (values->as_int64(i) != i) return false;
  return true;
}

/// A state's next value, all of which but one entry is its last value.
struct OneEntry {
  ValueId past = no_value;
  ValueId place = no_value;  ///< one integer
  ValueId entry = no_value;  ///< its extent along the axis is 1, or it is broadcast
  std::size_t axis = 0;
};

/// The only axis along which the condition, of dims as they are aligned with `rank`, has more than one element.
std::optional<std::size_t> only_axis(const Dims& dims, std::size_t rank) {
  std::optional<std::size_t> axis;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    if (axis) return std::nullopt;
    axis = rank - dims.size() + i;
  }
  return axis;
}

std::optional<OneEntry> one_entry(const Graph& graph, const State& state,
                                  const IdMap<std::vector<NodeId>>& readers) {
  OneEntry found;
  found.past = graph.inputs.at(state.input);
  const ValueId next = graph.outputs.at(state.output);
  const Node* where = producer_if(graph, next, Op::where);
  if (where == nullptr || where->inputs[2] != found.past || graph.type(next).layout != Layout{})
    return std::nullopt;
  if (readers[found.past].size() != 1 || std::ranges::count(graph.outputs, found.past) > 0)
    return std::nullopt;
  ValueId condition = where->inputs[0];
  if (const Node* view = producer_if(graph, condition, Op::broadcast_to)) condition = view->inputs[0];
  const Dims dims = graph.type(found.past).dims();
  const std::optional<std::size_t> axis = only_axis(graph.type(condition).dims(), dims.size());
  if (!axis || graph.type(condition).element_count() != dims[*axis]) return std::nullopt;
  found.axis = *axis;
  const Node* equal = producer_if(graph, without_views(graph, condition), Op::equal);
  if (equal == nullptr) return std::nullopt;
  const bool is_one_hot = either_order(*equal, [&](ValueId a, ValueId b) {
    const ValueId count = without_views(graph, a);
    found.place = without_views(graph, b);
    return counts_up(graph, count) && graph.type(count).element_count() == dims[found.axis] &&
           graph.type(found.place).element_count() == 1 && !is_float(graph.type(found.place).dtype);
  });
  if (!is_one_hot) return std::nullopt;
  found.entry = where->inputs[1];
  if (const Node* view = producer_if(graph, found.entry, Op::broadcast_to)) found.entry = view->inputs[0];
  const Dims entry = graph.type(found.entry).dims();
  const std::size_t missing = dims.size() - entry.size();
  if (found.axis >= missing && entry[found.axis - missing] != 1) return std::nullopt;
  return found;
}

ValueId written(GraphRewriter& rewriter, const OneEntry& one) {
  GraphBuilder builder(rewriter.graph());
  const auto sym = [&](ValueId id) { return Sym(builder, rewriter.mapped(id)); };
  Dims dims = rewriter.source().type(one.past).dims();
  const auto last = static_cast<double>(dims[one.axis] - 1);
  dims[one.axis] = 1;
  const auto axis = static_cast<int>(one.axis);
  const Dims ones(dims.size(), 1);
  const Sym place = reshape(cast(sym(one.place), DType::i64), {1});
  const Sym inside = apply(Op::minimum, apply(Op::maximum, place, 0.0), last);
  const Sym there = gather(sym(one.past), inside, axis);
  const Sym is_inside = reshape(apply(Op::equal, place, inside), ones);
  const Sym entry = where(is_inside, broadcast_to(sym(one.entry), dims), there);
  const Sym places = broadcast_to(reshape(inside, ones), dims);
  return builder.add(Op::write_elements, {sym(one.past), places, entry}, {{"axis", std::int64_t{axis}}}).id();
}

Graph write_entries(const Graph& graph) {
  const IdMap<std::vector<NodeId>> readers = graph.uses();
  std::map<NodeId, OneEntry> found;
  for (const State& state : graph.states)
    if (const auto one = one_entry(graph, state, readers))
      found[graph.value(graph.outputs[state.output]).producer] = *one;
  if (found.empty()) return graph;
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    const auto one = found.find(static_cast<NodeId>(&node - graph.nodes().data()));
    if (one == found.end()) return false;
    rewriter.set(node.outputs[0], written(rewriter, one->second));
    return true;
  });
}

}  // namespace

Graph write_states(const Graph& source) {
  Graph graph = write_entries(source);
  const IdMap<std::vector<NodeId>> readers = graph.uses();
  std::set<NodeId> all;
  for (const State& state : graph.states) all.merge(scatters_of(graph, state, readers));
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
