#include "frontend/graph/views.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "frontend/graph/rewrite.h"
#include "frontend/values/strided.h"

namespace sylvite {
namespace {

/// Where each non-unit dim stands when unit dims are not counted; -1 for unit dims.
std::vector<int> ranks_without_units(const Dims& dims) {
  std::vector<int> ranks;
  int next = 0;
  for (std::int64_t extent : dims) ranks.push_back(extent == 1 ? -1 : next++);
  return ranks;
}

/// reshape(slice(x)) as slice(reshape(x)): each sliced axis must be cut in whole multiples of what it is
/// split into. Axes of x that have one element are none: those of `to` stand for axes that are cut to one.
std::optional<ValueId> slice_of_reshape(Graph& graph, const Node& slice, const Dims& to) {
  const Dims dims = graph.type(slice.inputs[0]).dims(), sizes = graph.type(slice.outputs[0]).dims();
  const Dims& steps = slice.attributes.integers("steps");
  if (std::any_of(steps.begin(), steps.end(), [](std::int64_t step) { return step != 1; }))
    return std::nullopt;
  Dims whole, from, starts;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    whole.push_back(dims[d]);
    from.push_back(sizes[d]);
    starts.push_back(slice.attributes.integers("starts")[d]);
  }
  Dims whole_to;
  Dims new_starts;
  for (const DimGroup& group : dim_groups(from, to)) {
    for (std::size_t d = group.to_begin; d < group.to_end; ++d) whole_to.push_back(to[d]);
    new_starts.resize(whole_to.size(), 0);
    // The one axis of the group that is cut; those outside it, if any, must be of extent 1.
    std::optional<std::size_t> cut;
    for (std::size_t d = group.from_begin; d < group.from_end; ++d) {
      if (from[d] == whole[d]) continue;
      if (cut) return std::nullopt;
      cut = d;
    }
    if (!cut) continue;
    if (product(whole, group.from_begin, *cut) != 1 || group.to_begin == group.to_end) return std::nullopt;
    // Along the group's dims taken as one, the slice is a run of `size` elements.
    const std::int64_t step = product(from, *cut + 1, group.from_end);
    const std::int64_t size = from[*cut] * step;
    std::size_t first = group.to_begin;
    while (to[first] == 1 && first + 1 < group.to_end) ++first;
    const std::int64_t inner = size / to[first];
    if (starts[*cut] * step % inner != 0 || whole[*cut] * step % inner != 0) return std::nullopt;
    whole_to[first] = whole[*cut] * step / inner;
    new_starts[first] = starts[*cut] * step / inner;
  }
  const ValueId x = add_reshape(graph, slice.inputs[0], whole_to);
  return add_slice(graph, x, new_starts, to, Dims(to.size(), 1));
}

std::optional<ValueId> transpose_of_reshape(Graph& graph, const Node& transpose, const Dims& to) {
  const std::optional<ReshapedOrder> ahead =
      reshape_ahead(graph.type(transpose.inputs[0]).dims(), transpose.attributes.integers("perm"), to);
  if (!ahead) return std::nullopt;
  return add_transpose(graph, add_reshape(graph, transpose.inputs[0], ahead->dims), ahead->perm);
}

/// A transpose right after the work it orders is that kernel's to write; reshapes stay behind it.
bool is_epilogue(const Graph& graph, const Node& transpose) {
  return producer_if(graph, transpose.inputs[0], Op::attention) != nullptr ||
         producer_if(graph, transpose.inputs[0], Op::concat) != nullptr;
}

/// slice(transpose(x)) as transpose(slice(x)).
std::optional<ValueId> slice_ahead(Graph& graph, const Node& slice) {
  const Node* transpose = producer_if(graph, slice.inputs[0], Op::transpose);
  if (transpose == nullptr || is_epilogue(graph, *transpose)) return std::nullopt;
  return add_slice(graph, slice.inputs[0], slice.attributes.integers("starts"),
                   slice.attributes.integers("sizes"), slice.attributes.integers("steps"));
}

/// An earlier reshape of the same value to the same dims, so that readers of one alias see one value.
std::optional<ValueId> find_reshape(const Graph& graph, ValueId id, const Dims& dims) {
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (node->op != Op::reshape || node->inputs[0] != id) continue;
    if (graph.type(node->outputs[0]).dims() == dims) return node->outputs[0];
  }
  return std::nullopt;
}

}  // namespace

ValueId operand_beside_numbers(const Graph& graph, const Node& node) {
  if (!has_trait(node.op, OpTrait::pointwise) || node.outputs.size() != 1) return no_value;
  ValueId found = no_value;
  for (const ValueId input : node.inputs) {
    if (input != no_value && graph.is_constant(input) && graph.type(input).element_count() == 1) continue;
    if (input == no_value || found != no_value) return no_value;
    found = input;
  }
  return found;
}

Dims channels_behind() {
  return {0, 2, 3, 1};
}

Dims channels_ahead() {
  return {0, 3, 1, 2};
}

Dims inverse_order(const Dims& perm) {
  Dims inverse(perm.size());
  for (std::size_t d = 0; d < perm.size(); ++d)
    inverse[static_cast<std::size_t>(perm[d])] = static_cast<std::int64_t>(d);
  return inverse;
}

Dims last_two_swapped(int rank) {
  Dims perm(static_cast<std::size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm.end()[-1], perm.end()[-2]);
  return perm;
}

std::int64_t product(const Dims& dims, std::size_t begin, std::size_t end) {
  return std::accumulate(dims.begin() + static_cast<std::ptrdiff_t>(begin),
                         dims.begin() + static_cast<std::ptrdiff_t>(end), std::int64_t{1},
                         std::multiplies<>());
}

std::int64_t product_of(const Dims& dims, const Dims& chosen) {
  std::int64_t product = 1;
  for (const std::int64_t dim : chosen) product *= dims[static_cast<std::size_t>(dim)];
  return product;
}

Dims without_ones(Dims dims) {
  std::erase(dims, 1);
  return dims;
}

std::vector<DimGroup> dim_groups(const Dims& from, const Dims& to) {
  std::vector<DimGroup> groups;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < from.size() || j < to.size()) {
    DimGroup group{i, i, j, j};
    if (i < from.size()) group.from_end = ++i;
    if (j < to.size()) group.to_end = ++j;
    while (true) {
      const std::int64_t left = product(from, group.from_begin, group.from_end);
      const std::int64_t right = product(to, group.to_begin, group.to_end);
      if (left == right) break;
      if (left < right)
        group.from_end = ++i;
      else
        group.to_end = ++j;
    }
    groups.push_back(group);
  }
  return groups;
}

std::optional<ReshapedOrder> reshape_ahead(const Dims& source, const Dims& perm, const Dims& to) {
  const Dims from = permuted(source, perm);
  const std::vector<int> ranks = ranks_without_units(source);
  struct Moved {
    int rank;  ///< of the group's first non-unit dim in x; groups of unit dims stay in front
    std::size_t to_begin, to_end;
  };
  std::vector<Moved> groups;
  for (const DimGroup& group : dim_groups(from, to)) {
    int first = -1;
    int next = -1;
    for (std::size_t d = group.from_begin; d < group.from_end; ++d) {
      const int rank = ranks[static_cast<std::size_t>(perm[d])];
      if (rank < 0) continue;
      if (first < 0) first = next = rank;
      if (rank != next++) return std::nullopt;
    }
    groups.push_back({first, group.to_begin, group.to_end});
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Moved& a, const Moved& b) { return a.rank < b.rank; });
  ReshapedOrder result{{}, Dims(to.size(), 0)};
  for (const Moved& group : groups) {
    for (std::size_t d = group.to_begin; d < group.to_end; ++d) {
      result.perm[d] = static_cast<std::int64_t>(result.dims.size());
      result.dims.push_back(to[d]);
    }
  }
  return result;
}

OwnOperand own_operand(const Graph& graph, const IdMap<std::vector<NodeId>>& uses, ValueId operand) {
  const auto is_shared = [&](ValueId id) { return uses[id].size() != 1; };
  const Node* transpose = producer_if(graph, operand, Op::transpose);
  const bool turns = transpose != nullptr && transpose->attributes.integers("perm") == Dims{1, 0};
  const ValueId id = turns ? transpose->inputs[0] : operand;
  if (is_shared(operand) || is_shared(id) || graph.value(id).producer != no_node) return {};
  return {id, turns};
}

ValueId add_reshape(Graph& graph, ValueId id, const Dims& dims) {
  while (const Node* before = producer_if(graph, id, Op::reshape)) id = before->inputs[0];
  if (graph.type(id).dims() == dims) return id;
  if (graph.is_constant(id))
    return graph.add_constant(graph.value(id).constant->reshaped(dims), graph.value(id).name);
  std::optional<ValueId> moved;
  if (const Node* slice = producer_if(graph, id, Op::slice)) {
    if (const std::optional<ValueId> ahead = slice_ahead(graph, Node(*slice)))
      return add_reshape(graph, *ahead, dims);
    moved = slice_of_reshape(graph, Node(*slice), dims);
  }
  const Node* transpose = producer_if(graph, id, Op::transpose);
  if (transpose != nullptr && !is_epilogue(graph, *transpose))
    moved = transpose_of_reshape(graph, Node(*transpose), dims);
  if (!moved) moved = find_reshape(graph, id, dims);
  return moved ? *moved : graph.add(Op::reshape, {id}, {{"shape", dims}});
}

ValueId add_transpose(Graph& graph, ValueId id, const Dims& perm) {
  const Dims dims = graph.type(id).dims();
  if (const Node* before = producer_if(graph, id, Op::transpose))
    return add_transpose(graph, before->inputs[0], permuted(before->attributes.integers("perm"), perm));
  const std::vector<int> ranks = ranks_without_units(dims);
  int last = -1;
  bool in_order = true;
  for (std::int64_t axis : perm) {
    const int rank = ranks[static_cast<std::size_t>(axis)];
    in_order = in_order && (rank < 0 || rank > last);
    last = std::max(last, rank);
  }
  if (in_order) return add_reshape(graph, id, permuted(dims, perm));
  return graph.add(Op::transpose, {id}, {{"perm", perm}});
}

ValueId add_cast(Graph& graph, ValueId id, DType to) {
  if (graph.type(id).dtype == to) return id;
  return graph.add(Op::cast, {id}, {{"to", std::string(dtype_name(to))}});
}

ValueId add_slice(Graph& graph, ValueId id, const Dims& starts, const Dims& sizes, const Dims& steps) {
  const bool forward = std::all_of(steps.begin(), steps.end(), [](std::int64_t step) { return step == 1; });
  if (forward && graph.type(id).dims() == sizes) return id;
  const Node* transpose = producer_if(graph, id, Op::transpose);
  if (transpose == nullptr || is_epilogue(graph, *transpose))
    return graph.add(Op::slice, {id}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
  const Dims perm = transpose->attributes.integers("perm");
  Dims moved_starts(perm.size());
  Dims moved_sizes(perm.size());
  Dims moved_steps(perm.size());
  for (std::size_t d = 0; d < perm.size(); ++d) {
    const auto axis = static_cast<std::size_t>(perm[d]);
    moved_starts[axis] = starts[d];
    moved_sizes[axis] = sizes[d];
    moved_steps[axis] = steps[d];
  }
  return add_transpose(graph, add_slice(graph, transpose->inputs[0], moved_starts, moved_sizes, moved_steps),
                       perm);
}

ValueId add_slice_along(Graph& graph, ValueId id, std::size_t axis, std::int64_t start, std::int64_t size) {
  Dims sizes = graph.type(id).dims(), starts(sizes.size(), 0);
  starts[axis] = start;
  sizes[axis] = size;
  return add_slice(graph, id, starts, sizes, Dims(sizes.size(), 1));
}

}  // namespace sylvite
