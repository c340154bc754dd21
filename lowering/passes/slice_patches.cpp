// Before: y = reduce_sum(mul(reshape(transpose(gather(gather(x, lines), columns))), f))   lines and columns [7, 28]: what windows meet
// After:  y = mul(slice(x), slice(f)) + mul(slice(x), slice(f)) + ...                     a place of a window each
//
// What windows meet is not stored, where it is only folded along the places of a window: filters that each pixel makes for itself,
// weights of neighbours, the greatest of a window. Slices of the image are read where they lie.

#include <algorithm>
#include <optional>
#include <vector>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/join_two.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_places = 64;
constexpr std::int64_t least_results = 1 << 15;   // fewer leave threads idle that add up one after another
constexpr int most_operations = 3 * most_places;  ///< operations that a fold becomes
constexpr int deepest = 8;

Dims without(Dims dims, std::size_t dim) {
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(dim));
  return dims;
}

/// Places of a value that lie beside each other.
struct Run {
  std::int64_t start = 0, size = 0;
};

/// A row of a matrix of places, or a column, where it is a run.
std::optional<Run> run_of(const Tensor& places, bool is_column, std::int64_t number) {
  const std::int64_t rows = places.dims()[0], columns = places.dims()[1];
  const auto at = [&](std::int64_t i) {
    return places.as_int64(is_column ? i * columns + number : number * columns + i);
  };
  const Run run{at(0), is_column ? rows : columns};
  for (std::int64_t i = 0; i < run.size; ++i)
    if (at(i) != run.start + i) return std::nullopt;  // reshapes do not go past slices of every other place
  return run.start >= 0 ? std::optional(run) : std::nullopt;
}

/// Of a slice: of what that is of.
ValueId add_part(Graph& graph, ValueId id, Dims starts, const Dims& sizes) {
  const Node* before = producer_if(graph, id, Op::slice);
  const Dims ones(sizes.size(), 1);
  if (before != nullptr && before->attributes.integers("steps") == ones) {
    const Dims& first = before->attributes.integers("starts");
    for (std::size_t d = 0; d < starts.size(); ++d) starts[d] += first[d];
    id = before->inputs[0];
  }
  return add_slice(graph, id, starts, sizes, ones);
}

ValueId add_run(Graph& graph, ValueId id, std::size_t dim, const Run& run) {
  Dims sizes = graph.type(id).dims(), starts(sizes.size(), 0);
  starts[dim] = run.start;
  sizes[dim] = run.size;
  return add_part(graph, id, starts, sizes);
}

/// One place of a dim of what windows meet, without that dim, as slices; nothing where it is made otherwise.
std::optional<ValueId> pick(Graph& graph, ValueId id, std::size_t dim, std::int64_t place) {
  const TensorType type = graph.type(id);
  const NodeId producer = graph.value(id).producer;
  if (type.dims()[dim] == 1) return add_reshape(graph, id, without(type.dims(), dim));
  if (producer == no_node) return std::nullopt;
  const Node node = graph.node(producer);
  if (node.op == Op::transpose) {
    Dims perm = node.attributes.integers("perm");
    const std::int64_t from = perm[dim];
    const std::optional<ValueId> inner = pick(graph, node.inputs[0], static_cast<std::size_t>(from), place);
    perm = without(perm, dim);
    for (std::int64_t& each : perm) each -= each > from ? 1 : 0;
    return inner ? std::optional(add_transpose(graph, *inner, perm)) : std::nullopt;
  }
  if (node.op == Op::slice) {
    const Dims &starts = node.attributes.integers("starts"), &sizes = node.attributes.integers("sizes");
    if (node.attributes.integers("steps") != Dims(sizes.size(), 1)) return std::nullopt;
    const std::optional<ValueId> inner = pick(graph, node.inputs[0], dim, starts[dim] + place);
    return inner ? std::optional(add_part(graph, *inner, without(starts, dim), without(sizes, dim)))
                 : std::nullopt;
  }
  if (node.op != Op::gather || !graph.is_constant(node.inputs[1]) || graph.type(node.inputs[1]).rank() != 2)
    return std::nullopt;
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  if (dim == axis || dim == axis + 1) {
    const std::optional<Run> run = run_of(*graph.value(node.inputs[1]).constant, dim != axis, place);
    return run ? std::optional(add_run(graph, node.inputs[0], axis, *run)) : std::nullopt;
  }
  const std::optional<ValueId> inner = pick(graph, node.inputs[0], dim < axis ? dim : dim - 1, place);
  const auto moved = static_cast<std::int64_t>(dim < axis ? axis - 1 : axis);
  return inner ? std::optional(graph.add(Op::gather, {*inner, node.inputs[1]}, {{"axis", moved}}))
               : std::nullopt;
}

/// The same of a value that a reshape makes of it, whose dim then has one place.
std::optional<ValueId> patch(Graph& graph, ValueId id, std::size_t dim, std::int64_t place) {
  const Node* reshape = producer_if(graph, id, Op::reshape);
  ValueId picked = reshape == nullptr ? id : reshape->inputs[0];
  Dims made = graph.type(id).dims();
  const Dims from = graph.type(picked).dims();
  if (graph.type(picked).layout.channel_block != 0) return std::nullopt;
  for (const DimGroup& group : dim_groups(from, made)) {
    if (dim < group.to_begin || dim >= group.to_end) continue;
    if (product(made, group.to_begin, group.to_end) != made[dim]) return std::nullopt;
    for (std::size_t d = group.from_end; d-- > group.from_begin; place /= from[d]) {
      const std::optional<ValueId> next = pick(graph, picked, d, place % from[d]);
      if (!next) return std::nullopt;
      picked = *next;
    }
  }
  made[dim] = 1;
  return add_reshape(graph, picked, made);
}

bool is_work(const Node& node) {
  return has_trait(node.op, OpTrait::pointwise) && node.outputs.size() == 1;
}

/// The dim of a value that is so far from the last one, where it has several places.
std::optional<std::size_t> dim_of(const TensorType& type, std::int64_t behind) {
  if (type.rank() <= behind) return std::nullopt;
  const auto dim = static_cast<std::size_t>(type.rank() - 1 - behind);
  return type.dims()[dim] == 1 ? std::nullopt : std::optional(dim);
}

/// What windows meet, where it is among what pointwise work makes the value of; else no_value.
ValueId windows_in(Graph& graph, ValueId id, std::int64_t behind, int depth = 0) {
  const std::optional<std::size_t> dim = dim_of(graph.type(id), behind);
  const NodeId producer = graph.value(id).producer;
  if (!dim || producer == no_node || depth > deepest) return no_value;
  const Node node = graph.node(producer);
  if (!is_work(node)) return patch(graph, id, *dim, 0) ? id : no_value;
  for (const ValueId input : node.inputs) {
    const ValueId found = input == no_value ? no_value : windows_in(graph, input, behind, depth + 1);
    if (found != no_value) return found;
  }
  return no_value;
}

/// How places of folds are made. A run of dims that a reshape joins is apart again, as slices are along one of them.
struct WindowPlaces {
  struct Apart {
    Dims joined, dims;
  };
  Graph& graph;
  std::int64_t behind = 0;        ///< dims behind the folded one
  std::vector<Apart> apart = {};  ///< all dims
  std::size_t dim = 0;            ///< the folded one, among all that are apart
  Dims perm = {};                 ///< the order of dims in which places are made; as it is where empty
  int left = most_operations;     ///< operations
};

/// Of what windows meet, `met`, and the dim along which they are folded.
std::vector<WindowPlaces::Apart> apart_of(const Graph& graph, ValueId met, std::size_t folded) {
  const Dims made = graph.type(met).dims();
  const Node* reshape = producer_if(graph, met, Op::reshape);
  const Dims from = reshape == nullptr ? made : graph.type(reshape->inputs[0]).dims();
  std::vector<WindowPlaces::Apart> result;
  for (const DimGroup& group : dim_groups(from, made)) {
    const Dims joined(made.begin() + static_cast<std::ptrdiff_t>(group.to_begin),
                      made.begin() + static_cast<std::ptrdiff_t>(group.to_end));
    const Dims parts(from.begin() + static_cast<std::ptrdiff_t>(group.from_begin),
                     from.begin() + static_cast<std::ptrdiff_t>(group.from_end));
    const bool is_folded = group.to_begin <= folded && folded < group.to_end;
    result.push_back({joined, is_folded || parts.size() <= joined.size() ? joined : parts});
  }
  return result;
}

/// The dims of an operand that may be repeated, with joined ones apart; nothing where it is repeated along a part of these.
std::optional<Dims> apart(const WindowPlaces& places, Dims dims) {
  std::size_t rank = 0, at = 0;
  for (const WindowPlaces::Apart& each : places.apart) rank += each.joined.size();
  if (dims.size() > rank) return std::nullopt;
  dims.insert(dims.begin(), rank - dims.size(), 1);
  Dims result;
  for (const auto& [joined, parts] : places.apart) {
    const auto begin = dims.begin() + static_cast<std::ptrdiff_t>(at);
    const Dims own(begin, begin + static_cast<std::ptrdiff_t>(joined.size()));
    at += joined.size();
    if (joined == parts)
      result.insert(result.end(), own.begin(), own.end());
    else if (own == joined)
      result.insert(result.end(), parts.begin(), parts.end());
    else if (product(own, 0, own.size()) == 1)
      result.insert(result.end(), parts.size(), 1);
    else
      return std::nullopt;
  }
  return result;
}

/// A place of an operand in the order in which places are made, or all of it where it has one.
std::optional<ValueId> operand_at(WindowPlaces& places, ValueId id, std::int64_t place) {
  Graph& graph = places.graph;
  if (graph.type(id).element_count() == 1 && graph.type(id).rank() == 0) return id;
  const std::optional<Dims> dims = apart(places, graph.type(id).dims());
  if (!dims) return std::nullopt;
  ValueId own = add_reshape(graph, id, *dims);
  if ((*dims)[places.dim] > 1) {
    const std::optional<ValueId> met = patch(graph, own, places.dim, place);
    own = met ? *met : add_run(graph, own, places.dim, {place, 1});
  }
  return places.perm.empty() ? own : add_transpose(graph, own, places.perm);
}

/// One place of a value, by the work that makes it.
std::optional<ValueId> at_place(WindowPlaces& places, ValueId id, std::int64_t place) {
  Graph& graph = places.graph;
  const NodeId producer = graph.value(id).producer;
  if (!dim_of(graph.type(id), places.behind) || producer == no_node || !is_work(graph.node(producer)))
    return operand_at(places, id, place);
  if (--places.left < 0) return std::nullopt;
  const Node node = graph.node(producer);
  std::vector<ValueId> inputs;
  for (const ValueId input : node.inputs) {
    const std::optional<ValueId> part = input == no_value ? input : at_place(places, input, place);
    if (!part) return std::nullopt;
    inputs.push_back(*part);
  }
  return graph.add(node.op, inputs, node.attributes, node.name);
}

/// Many channels, which are ahead of the folded dim, come behind all pixels, which are behind it: convolutions leave them so.
Dims turned_order(const Dims& dims, std::size_t folded) {
  constexpr std::int64_t least_channels = 8;
  if (folded == 0 || product(dims, 1, folded) < least_channels) return {};
  Dims perm{0};
  for (std::size_t d = folded + 1; d < dims.size(); ++d) perm.push_back(static_cast<std::int64_t>(d));
  perm.push_back(static_cast<std::int64_t>(folded));
  for (std::size_t d = 1; d < folded; ++d) perm.push_back(static_cast<std::int64_t>(d));
  return perm;
}

/// nullopt where windows are not folded.
std::optional<WindowPlaces> places_of(Graph& graph, ValueId folded, std::int64_t behind) {
  const ValueId met = windows_in(graph, folded, behind);
  if (met == no_value || graph.type(met).rank() != graph.type(folded).rank()) return std::nullopt;
  const auto axis = static_cast<std::size_t>(graph.type(folded).rank() - 1 - behind);
  WindowPlaces places{graph, behind, apart_of(graph, met, axis)};
  const std::optional<Dims> all = apart(places, graph.type(folded).dims());
  if (!all) return std::nullopt;
  std::size_t before = 0;
  for (const auto& [joined, parts] : places.apart) {
    if (before + joined.size() > axis) {
      places.dim += axis - before;
      break;
    }
    before += joined.size();
    places.dim += parts.size();
  }
  places.perm = turned_order(*all, places.dim);
  return places;
}

bool slice(GraphRewriter& rewriter, const Node& node) {
  const std::optional<Op> join = join_of(node.op);
  if (!join) return false;
  Graph& graph = rewriter.graph();
  const ValueId folded = rewriter.mapped(node.inputs[0]);
  const TensorType type = graph.type(folded);
  const Dims& axes = node.attributes.integers("axes");
  if (axes.size() != 1 || !type.is_known() || !is_float(type.dtype) || type.element_count() == 0)
    return false;
  const std::int64_t count = type.dims()[static_cast<std::size_t>(axes[0])];
  const std::int64_t behind = type.rank() - 1 - axes[0];
  if (behind == 0 || count < 2 || count > most_places || type.element_count() < count * least_results)
    return false;
  std::optional<WindowPlaces> places = places_of(graph, folded, behind);
  if (!places) return false;
  std::optional<ValueId> all = joined_parts(graph, node, *join, type.dtype, count, [&](std::int64_t place) {
    return at_place(*places, folded, place);
  });
  if (!all) return false;
  if (!places->perm.empty()) all = add_transpose(graph, *all, inverse_order(places->perm));
  const Dims dims = rewriter.source().type(node.outputs[0]).dims();
  rewriter.set(node.outputs[0], add_reshape(graph, *all, dims));
  return true;
}

}  // namespace

Graph slice_patches(const Graph& graph) {
  return rewrite_nodes(graph, slice);
}

}  // namespace sylvite
