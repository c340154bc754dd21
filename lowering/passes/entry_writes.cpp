#include "lowering/passes/entry_writes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "frontend/graph/graph_builder.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

constexpr std::int64_t least_share = 4;            // of all elements that are written
constexpr std::int64_t most_rows_on_device = 512;  // which a thread writes in turn

struct Pair {
  ValueId past = no_value;  ///< no output of the graph
  ValueId next = no_value;
  const IdMap<std::vector<NodeId>>* readers = nullptr;
  bool on_device = false;

  [[nodiscard]] std::size_t reads(ValueId id) const { return (*readers)[id].size(); }
};

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

bool is_small_part(const Graph& graph, ValueId part, ValueId whole, std::int64_t rows, bool on_device) {
  return graph.type(part).element_count() * least_share <= graph.type(whole).element_count() &&
         (!on_device || rows <= most_rows_on_device);
}

// where(iota == place, new, past)

/// A next value, all of which but one entry is the last value.
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

std::optional<OneEntry> one_entry(const Graph& graph, const Pair& pair) {
  OneEntry found;
  found.past = pair.past;
  const Node* where = producer_if(graph, pair.next, Op::where);
  if (where == nullptr || where->inputs[2] != found.past || pair.reads(pair.past) != 1) return std::nullopt;
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

ValueId write_one(GraphRewriter& rewriter, const OneEntry& one) {
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

// transpose(scatter_nd(transpose(past), i, new))

struct TurnedScatter {
  ValueId past = no_value;
  const Node* scatter = nullptr;
  Dims forth;  ///< the permutation of past's axes: those along which indices are, then the others in order
  std::size_t indexed = 0;  ///< how many those are
};

std::optional<TurnedScatter> turned_scatter(const Graph& graph, const Pair& pair) {
  const Node* back = producer_if(graph, pair.next, Op::transpose);
  const Node* scatter = back == nullptr ? nullptr : producer_if(graph, back->inputs[0], Op::scatter_nd);
  const Node* forth = scatter == nullptr ? nullptr : producer_if(graph, scatter->inputs[0], Op::transpose);
  if (forth == nullptr || forth->inputs[0] != pair.past || pair.reads(pair.past) != 1) return std::nullopt;
  if (pair.reads(forth->outputs[0]) != 1) return std::nullopt;
  if (scatter->attributes.string("reduction") != "none" || scatter->inputs.size() != 3) return std::nullopt;
  const Dims& perm = forth->attributes.integers("perm");
  const Dims& inverse = back->attributes.integers("perm");
  for (std::size_t d = 0; d < perm.size(); ++d)
    if (inverse[static_cast<std::size_t>(perm[d])] != static_cast<std::int64_t>(d)) return std::nullopt;
  const auto indexed = static_cast<std::size_t>(graph.type(scatter->inputs[1]).dims().back());
  const bool is_ordered = std::is_sorted(perm.begin() + static_cast<std::ptrdiff_t>(indexed), perm.end());
  if (!is_ordered || !is_small_write(graph, *scatter, pair.on_device)) return std::nullopt;
  return TurnedScatter{pair.past, scatter, perm, indexed};
}

/// 0, 1, 2, ... along one of `rank` dims; no constant, as its extent may be open.
Sym counted(GraphBuilder& builder, std::int64_t extent, std::size_t dim, std::size_t rank) {
  Dims dims(rank, 1);
  dims[dim] = extent;
  const Attributes attributes = {{"dtype", std::string(dtype_name(DType::i64))},
                                 {"shape", dims},
                                 {"axis", static_cast<std::int64_t>(dim)}};
  return {builder, builder.graph().add(Op::iota, {}, attributes)};
}

/// `indices`, along the axis, into past for each element of `updates`.
Sym write_along(const Sym& past, const Sym& indices, const Sym& updates, std::size_t axis) {
  Dims ones(updates.dims().size(), 1);
  ones[axis] = updates.dims()[axis];
  const Sym places = broadcast_to(reshape(indices, ones), updates.dims());
  return past.builder().add(Op::write_elements, {past, places, updates},
                            {{"axis", static_cast<std::int64_t>(axis)}});
}

/// Along one axis: which updates have where it stands in past.
Sym write_axis(const Sym& past, const Sym& indices, const Sym& updates, std::size_t axis) {
  Dims order(past.dims().size());  // of updates, whose first dim is along the axis
  for (std::size_t d = 0; d < order.size(); ++d)
    order[d] = static_cast<std::int64_t>(d < axis ? d + 1 : d > axis ? d : 0);
  return write_along(past, indices, transpose(updates, order), axis);
}

/// Along several axes: tuples of indices that also count along the axes between these, of dims [of indices..., between...].
Sym write_axes(const Sym& past, const Sym& indices, const Sym& updates, const TurnedScatter& turned) {
  const Dims axes(turned.forth.begin(), turned.forth.begin() + static_cast<std::ptrdiff_t>(turned.indexed));
  const std::size_t leading = indices.dims().size() - 1;
  const std::int64_t end = *std::ranges::max_element(axes) + 1;
  const std::size_t rank = leading + static_cast<std::size_t>(end) - axes.size() + 1;
  Dims dims = updates.dims();
  dims.resize(rank, 1);
  dims.back() = 1;
  std::size_t next = leading;  // of the dims that count
  std::vector<Sym> tuple;
  for (std::int64_t axis = 0; axis < end; ++axis) {
    const auto found = std::ranges::find(axes, axis);
    if (found == axes.end()) {
      tuple.push_back(broadcast_to(counted(past.builder(), dims[next], next, rank), dims));
      ++next;
      continue;
    }
    const std::int64_t place = found - axes.begin();
    Dims own(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(leading));
    own.resize(rank, 1);
    const Sym component = slice(indices, static_cast<int>(leading), place, place + 1);
    tuple.push_back(broadcast_to(reshape(component, own), dims));
  }
  const Sym tuples = concat(tuple, static_cast<int>(rank) - 1);
  return past.builder().add(Op::write_nd, {past, tuples, updates});
}

ValueId write_turned(GraphRewriter& rewriter, const TurnedScatter& turned) {
  GraphBuilder builder(rewriter.graph());
  const auto sym = [&](ValueId id) { return Sym(builder, rewriter.mapped(id)); };
  const Sym past = sym(turned.past), indices = sym(turned.scatter->inputs[1]),
            updates = sym(turned.scatter->inputs[2]);
  if (turned.indexed == 1 && indices.rank() == 2)
    return write_axis(past, indices, updates, static_cast<std::size_t>(turned.forth[0])).id();
  return write_axes(past, indices, updates, turned).id();
}

// concat(past[..., :a], new, past[..., b:])

struct NewPart {
  ValueId past = no_value;
  ValueId part = no_value;
  std::size_t axis = 0;
  std::int64_t start = 0;
};

/// All of past along other axes, from `start` on along this one, which nothing else reads.
bool is_part_of(const Graph& graph, ValueId id, const Pair& pair, std::size_t axis, std::int64_t start) {
  const ValueId past = pair.past;
  const Node* slice = producer_if(graph, id, Op::slice);
  if (slice == nullptr || slice->inputs[0] != past || pair.reads(id) != 1) return false;
  const Dims starts = slice->attributes.integers("starts"), steps = slice->attributes.integers("steps");
  const Dims whole = graph.type(past).dims(), dims = graph.type(id).dims();
  for (std::size_t d = 0; d < whole.size(); ++d) {
    if (steps[d] != 1) return false;
    if (d == axis ? starts[d] != start : dims[d] != whole[d]) return false;
  }
  return true;
}

std::optional<NewPart> new_part(const Graph& graph, const Pair& pair) {
  const Node* concat = producer_if(graph, pair.next, Op::concat);
  if (concat == nullptr) return std::nullopt;
  NewPart found{pair.past, no_value, static_cast<std::size_t>(concat->attributes.integer("axis")), 0};
  std::int64_t at = 0;
  for (const ValueId id : concat->inputs) {
    if (!is_part_of(graph, id, pair, found.axis, at)) {
      if (found.part != no_value) return std::nullopt;
      found.part = id;
      found.start = at;
    }
    at += graph.type(id).dims()[found.axis];
  }
  if (found.part == no_value || pair.reads(pair.past) + 1 != concat->inputs.size()) return std::nullopt;
  const std::int64_t rows = graph.type(found.part).dims()[found.axis];
  const bool is_small = is_small_part(graph, found.part, pair.past, rows, pair.on_device);
  return is_small ? std::optional(found) : std::nullopt;
}

ValueId write_part(GraphRewriter& rewriter, const NewPart& found) {
  GraphBuilder builder(rewriter.graph());
  const auto sym = [&](ValueId id) { return Sym(builder, rewriter.mapped(id)); };
  const Sym updates = sym(found.part);
  const Sym count = counted(builder, updates.dims()[found.axis], 0, 1);
  return write_along(sym(found.past), count + static_cast<double>(found.start), updates, found.axis).id();
}

using Rewrites = std::map<NodeId, std::function<void(GraphRewriter&, const Node&)>>;

void add_rewrites(const Graph& graph, const Pair& pair, Rewrites& rewrites) {
  const NodeId last = graph.value(pair.next).producer;
  if (const auto one = one_entry(graph, pair)) {
    rewrites[last] = [one](GraphRewriter& rewriter, const Node& node) {
      rewriter.set(node.outputs[0], write_one(rewriter, *one));
    };
  } else if (const auto turned = turned_scatter(graph, pair)) {
    rewrites[graph.value(turned->scatter->outputs[0]).producer] = [turned](GraphRewriter& rewriter,
                                                                           const Node& node) {
      rewriter.set(node.outputs[0],
                   add_transpose(rewriter.graph(), write_turned(rewriter, *turned), turned->forth));
    };
    rewrites[last] = [](GraphRewriter& rewriter, const Node& node) {
      const ValueId turned_value = rewriter.mapped(node.inputs[0]);
      rewriter.set(node.outputs[0], producer_if(rewriter.graph(), turned_value, Op::transpose)->inputs[0]);
    };
  } else if (const auto part = new_part(graph, pair)) {
    rewrites[last] = [part](GraphRewriter& rewriter, const Node& node) {
      rewriter.set(node.outputs[0], write_part(rewriter, *part));
    };
  }
}

}  // namespace

bool is_small_write(const Graph& graph, const Node& scatter, bool on_device) {
  const Dims indices = graph.type(scatter.inputs[1]).dims();
  const bool has_tuples = scatter.op == Op::scatter_nd;
  const std::int64_t rows = has_tuples
                                ? product(indices, 0, indices.size() - 1)
                                : indices[static_cast<std::size_t>(scatter.attributes.integer("axis"))];
  return is_small_part(graph, scatter.inputs[2], scatter.inputs[0], rows, on_device);
}

Graph write_entries(const Graph& graph, const std::vector<State>& pairs, bool on_device) {
  const IdMap<std::vector<NodeId>> readers = graph.uses();
  Rewrites rewrites;
  for (const State& state : pairs) {
    const Pair pair{graph.inputs.at(state.input), graph.outputs.at(state.output), &readers, on_device};
    const bool is_shown = std::ranges::count(graph.outputs, pair.past) > 0;
    if (!is_shown && graph.type(pair.next).layout == Layout{}) add_rewrites(graph, pair, rewrites);
  }
  if (rewrites.empty()) return graph;
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    const auto found = rewrites.find(static_cast<NodeId>(&node - graph.nodes().data()));
    if (found == rewrites.end()) return false;
    found->second(rewriter, node);
    return true;
  });
}

}  // namespace sylvite
