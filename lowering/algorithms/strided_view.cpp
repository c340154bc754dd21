#include "lowering/algorithms/strided_view.h"

#include <algorithm>

#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

void transpose(StridedView& view, const Dims& perm) {
  const StridedView from = view;
  for (std::size_t i = 0; i < perm.size(); ++i) {
    view.dims[i] = from.dims[static_cast<std::size_t>(perm[i])];
    view.strides[i] = from.strides[static_cast<std::size_t>(perm[i])];
  }
}

void slice(StridedView& view, const Dims& starts, const Dims& steps, const Dims& dims) {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    view.offset += starts[i] * view.strides[i];
    view.strides[i] *= steps[i];
  }
  view.dims = dims;
}

/// The stride of dims [begin, end) as one, if they lie together; dims of extent 1 lie anywhere.
std::optional<std::int64_t> joined_stride(const StridedView& view, std::size_t begin, std::size_t end) {
  std::int64_t stride = 1, next = 0;
  for (std::size_t i = end; i-- > begin;) {
    if (view.dims[i] == 1) continue;
    if (next == 0)
      stride = view.strides[i];
    else if (view.strides[i] != next)
      return std::nullopt;
    next = view.strides[i] * view.dims[i];
  }
  return stride;
}

void broadcast(StridedView& view, const Dims& dims) {
  const StridedView from = view;
  const std::size_t added = dims.size() - from.dims.size();
  view.strides.assign(dims.size(), 0);
  for (std::size_t i = 0; i < from.dims.size(); ++i)
    if (from.dims[i] == dims[added + i]) view.strides[added + i] = from.strides[i];
  view.dims = dims;
}

bool reshape(StridedView& view, const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (const DimGroup& group : dim_groups(view.dims, dims)) {
    const std::optional<std::int64_t> stride = joined_stride(view, group.from_begin, group.from_end);
    if (!stride) return false;
    std::int64_t at = *stride;
    for (std::size_t i = group.to_end; i-- > group.to_begin;) {
      strides[i] = at;
      at *= dims[i];
    }
  }
  view.dims = dims;
  view.strides = strides;
  return true;
}

}  // namespace

std::optional<StridedView> strided_view(const Graph& body, ValueId id) {
  const Dims dims = body.type(id).dims();
  if (std::find(dims.begin(), dims.end(), 0) != dims.end() || body.type(id).layout.channel_block != 0)
    return std::nullopt;
  if (body.value(id).producer == no_node) {
    const auto found = std::find(body.inputs.begin(), body.inputs.end(), id);
    if (found == body.inputs.end()) return std::nullopt;
    return StridedView{static_cast<int>(found - body.inputs.begin()), 0, dims, dense_strides(dims)};
  }
  const Node& node = body.node(body.value(id).producer);
  if (!has_trait(node.op, OpTrait::view)) return std::nullopt;
  std::optional<StridedView> view = strided_view(body, node.inputs.at(0));
  if (!view) return std::nullopt;
  switch (node.op) {
    case Op::transpose:
      transpose(*view, node.attributes.integers("perm"));
      return view;
    case Op::slice:
      slice(*view, node.attributes.integers("starts"), node.attributes.integers("steps"), dims);
      return view;
    case Op::broadcast_to:
      broadcast(*view, dims);
      return view;
    case Op::reshape:
      return reshape(*view, dims) ? view : std::nullopt;
    default:
      return std::nullopt;
  }
}

bool reads_rows_in_place(const Graph& body, ValueId id) {
  const std::optional<StridedView> view = strided_view(body, id);
  if (!view || view->strides.empty() || view->strides.back() != 1) return false;
  for (NodeId at = body.value(id).producer; at != no_node;
       at = body.value(body.node(at).inputs.at(0)).producer) {
    if (body.node(at).op == Op::reshape) return false;
  }
  return true;
}

}  // namespace sylvite
