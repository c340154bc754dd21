// Before: y = scatter_nd(x, indices, updates)    x bf16[16777216], 4,194,304 updates, which replace
// After:  places = i32 of the indices;  least, greatest = those of each 256 of them
//         y = scatter_nd(x, places, updates, least, greatest)
// A device looks through the updates once for each part of the places, as the last one that is written there counts. Neighbouring
// updates mostly go to neighbouring places, as where poolings are undone: parts that have nothing there are passed over.

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

constexpr std::int64_t least_updates = 1 << 17, least_places = 1 << 20, most_places = 1 << 30;
constexpr std::int64_t most_of_part = 1024, enough_of_part = 256, least_of_part = 64;

/// How many updates have bounds of their own; 0 where none divides all.
std::int64_t part_of(std::int64_t updates) {
  for (std::int64_t part = enough_of_part; part >= least_of_part; --part)
    if (updates % part == 0) return part;
  for (std::int64_t part = enough_of_part; part <= most_of_part; ++part)
    if (updates % part == 0) return part;
  return 0;
}

ValueId add_number(Graph& graph, std::int64_t value) {
  Tensor number(DType::i32, {});
  number.set_int64(0, value);
  return graph.add_constant(number);
}

/// Which place of the flat value each update is written to: indices count from the end where negative, and stand for the nearest one
/// where out of range.
ValueId add_flat_places(Graph& graph, ValueId indices, const Dims& extents) {
  const Dims dims = graph.type(indices).dims(), strides = dense_strides(extents);
  const std::int64_t updates = product(dims, 0, dims.size() - 1);
  const ValueId tuples = add_reshape(graph, indices, {updates, dims.back()});
  ValueId places = no_value;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const ValueId given =
        add_cast(graph, add_slice_along(graph, tuples, 1, static_cast<std::int64_t>(d), 1), DType::i64);
    Tensor extent(DType::i64, {}), zero(DType::i64, {});
    extent.set_int64(0, extents[d]);
    zero.set_int64(0, 0);
    const ValueId whole = graph.add_constant(extent), none = graph.add_constant(zero);
    const ValueId index =
        graph.add(Op::where, {graph.add(Op::less, {given, none}), graph.add(Op::add, {given, whole}), given});
    Tensor last(DType::i64, {});
    last.set_int64(0, extents[d] - 1);
    const ValueId within =
        graph.add(Op::minimum, {graph.add(Op::maximum, {index, none}), graph.add_constant(last)});
    const ValueId term =
        graph.add(Op::mul, {add_cast(graph, within, DType::i32), add_number(graph, strides[d])});
    places = places == no_value ? term : graph.add(Op::add, {places, term});
  }
  return places;
}

/// The value in other dims of the same elements; one number everywhere stays one.
ValueId in_dims(GraphRewriter& rewriter, ValueId id, const Dims& dims) {
  const Graph& source = rewriter.source();
  const Node* view = producer_if(source, id, Op::reshape);
  const Node* repeated = producer_if(source, view == nullptr ? id : view->inputs[0], Op::broadcast_to);
  if (repeated != nullptr && source.type(repeated->inputs[0]).element_count() == 1)
    return rewriter.graph().add(Op::broadcast_to,
                                {add_reshape(rewriter.graph(), rewriter.mapped(repeated->inputs[0]), {})},
                                {{"shape", dims}});
  return add_reshape(rewriter.graph(), rewriter.mapped(id), dims);
}

bool bound(GraphRewriter& rewriter, const Node& node) {
  if (node.op != Op::scatter_nd || node.attributes.string("reduction") != "none" || node.inputs.size() > 3)
    return false;
  const Graph& source = rewriter.source();
  const TensorType &type = source.type(node.inputs[0]), &indices = source.type(node.inputs[1]);
  if (!type.is_known() || !indices.is_known() || type.element_count() > most_places) return false;
  const Dims dims = type.dims(), tuples = indices.dims();
  const auto size = static_cast<std::size_t>(tuples.back());
  const std::int64_t updates = product(tuples, 0, tuples.size() - 1), places = product(dims, 0, size);
  const std::int64_t part = part_of(updates);
  if (updates < least_updates || places < least_places || part == 0) return false;
  Graph& graph = rewriter.graph();
  const ValueId written =
      add_flat_places(graph, rewriter.mapped(node.inputs[1]),
                      Dims(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(size)));
  const ValueId parts = add_reshape(graph, written, {updates / part, part});
  const auto bounds = [&](Op op) {
    return graph.add(op, {parts}, {{"axes", Dims{1}}, {"keepdims", std::int64_t{0}}});
  };
  Dims flat = {places}, rows = {updates};
  for (std::size_t d = size; d < dims.size(); ++d) {
    flat.push_back(dims[d]);
    rows.push_back(dims[d]);
  }
  const ValueId made = graph.add(Op::scatter_nd,
                                 {in_dims(rewriter, node.inputs[0], flat), written,
                                  add_reshape(graph, rewriter.mapped(node.inputs[2]), rows),
                                  bounds(Op::reduce_min), bounds(Op::reduce_max)},
                                 node.attributes, node.name);
  rewriter.set(node.outputs[0], add_reshape(graph, made, dims));
  return true;
}

}  // namespace

Graph bound_scatters(const Graph& graph) {
  return rewrite_nodes(graph, bound);
}

}  // namespace sylvite
