// Values that are written to places known ahead need no scatter:
//   scatter_nd(x[8,4], {2,3,4}, u[3,4])     ->  concat(x[0:2], u, x[5:8])
//   scatter_elements(x[8], {0,2,4,6}, u[4]) ->  where({1,0,1,0,...}, gather(u, {0,0,1,1,...}), x)
// Exporters write assignments to slices in this way. Where several follow each other, each takes the parts of the one before.

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

/// The places that updates take along some of the leading dims, or along one.
struct Box {
  std::vector<std::size_t> axes;
  Dims starts, sizes;
  std::vector<std::int64_t> table;  ///< of one axis: where each update goes, when they are no range
};

/// What the scatters of this walk were made of, side by side along an axis.
struct Parts {
  std::size_t axis = 0;
  std::vector<ValueId> values;
};
using KnownParts = std::map<ValueId, Parts>;

/// So many parts are cut anew for each scatter of a chain; of longer ones the concat is cut.
constexpr std::size_t most_parts = 256;

bool is_range(const std::vector<std::int64_t>& places) {
  for (std::size_t i = 1; i < places.size(); ++i)
    if (places[i] != places[0] + static_cast<std::int64_t>(i)) return false;
  return true;
}

/// Counts negative indices from the end; false where one is out of range.
bool settle_indices(std::vector<std::int64_t>& indices, std::int64_t extent) {
  for (std::int64_t& index : indices) {
    if (index < 0) index += extent;
    if (index < 0 || index >= extent) return false;
  }
  return true;
}

Box along(std::size_t axis, std::vector<std::int64_t> places) {
  if (is_range(places)) return {{axis}, {places[0]}, {static_cast<std::int64_t>(places.size())}, {}};
  return {{axis}, {0}, {static_cast<std::int64_t>(places.size())}, std::move(places)};
}

/// Places along the axis of scatter_elements, which are the same whatever the other coordinates are.
std::optional<Box> places_of_elements(const Graph& graph, const Node& node) {
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  const Dims dims = graph.type(node.outputs[0]).dims(), counts = graph.type(node.inputs[1]).dims();
  const Node* view = producer_if(graph, node.inputs[1], Op::broadcast_to);
  const ValueId id = view == nullptr ? node.inputs[1] : view->inputs[0];
  if (!graph.is_constant(id)) return std::nullopt;
  const std::vector<std::int64_t> indices = graph.value(id).constant->to_int64s();
  const Dims given = graph.type(id).dims();
  const std::size_t ahead = counts.size() - given.size();
  if (axis < ahead) return std::nullopt;
  const auto extent = static_cast<std::size_t>(given[axis - ahead]);
  const auto inner = static_cast<std::size_t>(product(given, axis - ahead + 1, given.size()));
  if (extent == 0 || inner == 0) return std::nullopt;
  std::vector<std::int64_t> places(extent);
  for (std::size_t i = 0; i < extent; ++i) places[i] = indices[i * inner];
  for (std::size_t i = 0; i < indices.size(); ++i)
    if (indices[i] != places[i / inner % extent]) return std::nullopt;
  places.resize(static_cast<std::size_t>(counts[axis]), places[0]);
  if (!settle_indices(places, dims[axis])) return std::nullopt;
  Box box = along(axis, std::move(places));
  for (std::size_t other = 0; other < dims.size(); ++other) {
    if (other == axis || counts[other] == dims[other]) continue;
    if (!box.table.empty()) return std::nullopt;
    box.axes.push_back(other);
    box.starts.push_back(0);
    box.sizes.push_back(counts[other]);
  }
  return box;
}

/// How an index grows with each dim of the tuples: along none or one of them, by ones.
struct Component {
  std::int64_t start = 0;
  std::optional<std::size_t> dim;
};

std::optional<Component> component_of(const std::vector<std::int64_t>& indices, const Dims& tuples) {
  Component found{indices[0], std::nullopt};
  const Dims strides = dense_strides(tuples);
  for (std::size_t d = 0; d < tuples.size(); ++d) {
    if (tuples[d] == 1 || indices[static_cast<std::size_t>(strides[d])] == indices[0]) continue;
    if (found.dim) return std::nullopt;
    found.dim = d;
  }
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::int64_t step =
        found.dim ? static_cast<std::int64_t>(i) / strides[*found.dim] % tuples[*found.dim] : 0;
    if (indices[i] != found.start + step) return std::nullopt;
  }
  return found;
}

/// Places of scatter_nd, whose tuples run through a box, dims in order; of tuples of one index, any places.
std::optional<Box> places_of_tuples(const Graph& graph, const Node& node) {
  if (!graph.is_constant(node.inputs[1])) return std::nullopt;
  const Dims dims = graph.type(node.outputs[0]).dims();
  Dims tuples = graph.type(node.inputs[1]).dims();
  const auto size = static_cast<std::size_t>(tuples.back());
  tuples.pop_back();
  const std::vector<std::int64_t> all = graph.value(node.inputs[1]).constant->to_int64s();
  Box box;
  std::size_t next = 0;  // the first dim of the tuples that no index runs along yet
  for (std::size_t c = 0; c < size; ++c) {
    std::vector<std::int64_t> indices;
    for (std::size_t i = c; i < all.size(); i += size) indices.push_back(all[i]);
    if (!settle_indices(indices, dims[c])) return std::nullopt;
    if (size == 1) return along(0, std::move(indices));
    const std::optional<Component> component = component_of(indices, tuples);
    if (!component) return std::nullopt;
    if (component->dim) {
      while (next < *component->dim && tuples[next] == 1) ++next;
      if (next != *component->dim) return std::nullopt;
      ++next;
    }
    box.axes.push_back(c);
    box.starts.push_back(component->start);
    box.sizes.push_back(component->dim ? tuples[*component->dim] : 1);
  }
  while (next < tuples.size() && tuples[next] == 1) ++next;
  return next == tuples.size() ? std::optional(box) : std::nullopt;
}

/// A state that is written stays where it lies, as does what is written over an input: a scatter does that.
bool is_of_state(const Graph& graph, ValueId id) {
  while (true) {
    const NodeId producer = graph.value(id).producer;
    if (producer == no_node) break;
    const Node& node = graph.node(producer);
    if (node.op != Op::scatter_nd && node.op != Op::scatter_elements && node.op != Op::reshape) return false;
    id = node.inputs[0];
  }
  const auto is_input = [&](const State& pair) { return graph.inputs[pair.input] == id; };
  return std::ranges::any_of(graph.states, is_input) || std::ranges::any_of(graph.overwrites, is_input);
}

class Placer {
 public:
  Placer(GraphRewriter& rewriter, KnownParts& known) : graph_(&rewriter.graph()), known_(&known) {}

  /// `updates` in place of the box of `x`, or added to it.
  ValueId put(ValueId x, const Box& box, std::size_t level, ValueId updates, bool adds) {
    if (level == box.axes.size()) return adds ? graph_->add(Op::add, {x, updates}) : updates;
    const std::size_t axis = box.axes[level];
    const std::int64_t start = box.starts[level], stop = start + box.sizes[level];
    const std::int64_t extent = graph_->type(x).dims()[axis];
    if (box.sizes[level] == extent) return put(x, box, level + 1, updates, adds);
    std::vector<ValueId> parts = cut(x, axis, 0, start);
    const bool is_read = adds || level + 1 < box.axes.size();
    parts.push_back(put(is_read ? joined(cut(x, axis, start, stop), axis) : x, box,
                        is_read ? level + 1 : box.axes.size(), updates, adds));
    const std::vector<ValueId> behind = cut(x, axis, stop, extent);
    parts.insert(parts.end(), behind.begin(), behind.end());
    const ValueId result = joined(parts, axis);
    if (level == 0) known_->insert_or_assign(result, Parts{axis, std::move(parts)});
    return result;
  }

  /// Places of one axis in any order; of those named twice, the last stays.
  ValueId pick(ValueId x, std::size_t axis, const std::vector<std::int64_t>& places, ValueId updates) {
    const auto extent = static_cast<std::size_t>(graph_->type(x).dims()[axis]);
    std::vector<std::int64_t> from(extent, 0);
    std::vector<std::uint8_t> is_new(extent, 0);
    for (std::size_t i = 0; i < places.size(); ++i) {
      from[static_cast<std::size_t>(places[i])] = static_cast<std::int64_t>(i);
      is_new[static_cast<std::size_t>(places[i])] = 1;
    }
    const ValueId picked = graph_->add(Op::gather, {updates, graph_->add_constant(Tensor::vector_i64(from))},
                                       {{"axis", static_cast<std::int64_t>(axis)}});
    if (std::ranges::count(is_new, 0) == 0) return picked;
    Dims line(static_cast<std::size_t>(graph_->type(x).rank()), 1);
    line[axis] = static_cast<std::int64_t>(extent);
    const ValueId mask = graph_->add_constant(Tensor::of(DType::boolean, line, is_new));
    return graph_->add(Op::where, {mask, picked, x});
  }

 private:
  /// What lies from `start` to `stop`: the parts that are known, as far as they do.
  std::vector<ValueId> cut(ValueId x, std::size_t axis, std::int64_t start, std::int64_t stop) {
    if (start >= stop) return {};
    const auto found = known_->find(x);
    if (found == known_->end() || found->second.axis != axis || found->second.values.size() > most_parts)
      return {add_slice_along(*graph_, x, axis, start, stop - start)};
    std::vector<ValueId> parts;
    std::int64_t at = 0;
    for (const ValueId value : std::vector(found->second.values)) {
      const std::int64_t size = graph_->type(value).dims()[axis];
      const std::int64_t low = std::max(start - at, std::int64_t{0}), high = std::min(stop - at, size);
      if (low < high) parts.push_back(slice_of(value, axis, low, high - low));
      at += size;
    }
    return parts;
  }

  /// Of what is a slice itself, a slice of what that is one of.
  ValueId slice_of(ValueId x, std::size_t axis, std::int64_t start, std::int64_t size) {
    const Node* outer = producer_if(*graph_, x, Op::slice);
    const Dims ones(static_cast<std::size_t>(graph_->type(x).rank()), 1);
    if (outer == nullptr || outer->attributes.integers("steps") != ones)
      return add_slice_along(*graph_, x, axis, start, size);
    Dims starts = outer->attributes.integers("starts"), sizes = graph_->type(x).dims();
    starts[axis] += start;
    sizes[axis] = size;
    return add_slice(*graph_, outer->inputs[0], starts, sizes, ones);
  }

  /// Transposed parts are put together as they lie, and transposed at once.
  ValueId joined(std::vector<ValueId> parts, std::size_t axis) {
    if (parts.size() == 1) return parts[0];
    const Dims perm = common_order(parts);
    if (perm.empty()) return graph_->add(Op::concat, parts, {{"axis", static_cast<std::int64_t>(axis)}});
    const Dims back = inverse_order(perm);
    for (ValueId& part : parts) part = add_transpose(*graph_, part, back);
    return add_transpose(*graph_, graph_->add(Op::concat, parts, {{"axis", perm[axis]}}), perm);
  }

  /// The one in which all parts but constants are transposed; empty where they are not.
  [[nodiscard]] Dims common_order(const std::vector<ValueId>& parts) const {
    Dims perm;
    for (const ValueId part : parts) {
      if (graph_->is_constant(part)) continue;
      const Node* view = producer_if(*graph_, part, Op::transpose);
      if (view == nullptr || (!perm.empty() && view->attributes.integers("perm") != perm)) return {};
      perm = view->attributes.integers("perm");
    }
    return perm;
  }

  Graph* graph_;
  KnownParts* known_;
};

bool place(GraphRewriter& rewriter, const Node& node, KnownParts& known) {
  const bool by_elements = node.op == Op::scatter_elements;
  if (!by_elements && node.op != Op::scatter_nd) return false;
  const Graph& source = rewriter.source();
  const std::string& reduction = node.attributes.string("reduction");
  if (reduction != "none" && reduction != "add") return false;
  for (const ValueId input : node.inputs)
    if (!source.type(input).is_known() || source.type(input).element_count() == 0) return false;
  if (is_of_state(source, node.inputs[0])) return false;
  const std::optional<Box> box =
      by_elements ? places_of_elements(source, node) : places_of_tuples(source, node);
  const bool adds = reduction == "add";
  if (!box || (adds && (!box->table.empty() || source.type(node.outputs[0]).dtype == DType::boolean)))
    return false;
  Dims dims = source.type(node.outputs[0]).dims();
  for (std::size_t i = 0; i < box->axes.size(); ++i) dims[box->axes[i]] = box->sizes[i];
  const ValueId x = rewriter.mapped(node.inputs[0]);
  const ValueId updates = add_reshape(rewriter.graph(), rewriter.mapped(node.inputs[2]), dims);
  Placer placer(rewriter, known);
  rewriter.set(node.outputs[0], box->table.empty() ? placer.put(x, *box, 0, updates, adds)
                                                   : placer.pick(x, box->axes[0], box->table, updates));
  return true;
}

}  // namespace

Graph place_ranges(const Graph& graph) {
  KnownParts known;
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return place(rewriter, node, known); });
}

}  // namespace sylvite
