#include "lowering/plan/run_extents.h"

#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"

namespace sylvite {
namespace {

std::int64_t least_of(const Kernel& kernel, const Extent& extent) {
  return extent.is_known() ? extent.known() : bounds(extent, kernel.open->symbols.table).low;
}

RunExtent run_extent_of(const Kernel& kernel, std::int64_t extent, const Extent& open) {
  return open.is_known() ? RunExtent(extent) : RunExtent(extent, least_of(kernel, open));
}

}  // namespace

RunExtent RunExtent::fused_with(const RunExtent& other) const {
  RunExtent result(extent * other.extent, least * other.least);
  result.multiple = multiple * other.multiple;
  result.is_open = is_open || other.is_open;
  return result;
}

RunExtent RunExtent::steps(std::int64_t step) const {
  if (!is_open) return ceil_div(extent, step);
  RunExtent result(ceil_div(extent, step), ceil_div(least, step));
  if (is_multiple_of(step)) result.multiple = multiple / step;
  return result;
}

const Graph& widest_body(const Kernel& kernel) {
  return kernel.open ? *kernel.open : kernel.body;
}

NodeId open_anchor(const Kernel& kernel) {
  if (kernel.anchor == no_node) return no_node;
  NodeId left = kernel.anchor;
  for (std::size_t i = 0; i < kernel.open->nodes().size(); ++i)
    if (kernel.open->nodes()[i].op != Op::extents && left-- == 0) return static_cast<NodeId>(i);
  throw InternalError("kernel {} has no anchor where its sizes are open", kernel.id);
}

std::int64_t least_extent(const Kernel& kernel, ValueId id, std::size_t dim) {
  return least_of(kernel, widest_body(kernel).type(id).shape.at(dim));
}

std::int64_t most_extent(const Kernel& kernel, ValueId id, std::size_t dim) {
  const Extent& extent = widest_body(kernel).type(id).shape.at(dim);
  return extent.is_known() ? extent.known() : bounds(extent, kernel.open->symbols.table).high;
}

std::vector<RunExtent> run_extents(const Kernel& kernel, ValueId id) {
  const Dims stored = kernel.body.type(id).storage_dims();
  const Shape open = widest_body(kernel).type(id).storage_shape();
  std::vector<RunExtent> result;
  result.reserve(stored.size());
  for (std::size_t i = stored.size(); i-- > 0;) result.push_back(run_extent_of(kernel, stored[i], open[i]));
  return result;
}

std::vector<Extent> pads_in_runs(const Kernel& kernel, const Node& node) {
  const Graph& body = widest_body(kernel);
  return body.node(body.value(node.outputs.at(0)).producer).attributes.extents("pads");
}

bool has_pads(const Kernel& kernel, const Node& node, std::size_t dim) {
  const std::vector<Extent> pads = pads_in_runs(kernel, node);
  return pads.at(dim) != 0 || pads.at(dim + pads.size() / 2) != 0;
}

bool only_batches_are_open(const Kernel& kernel) {
  if (!kernel.open) return true;
  return std::ranges::all_of(kernel.open->values(), [](const Value& value) {
    const Shape& shape = value.type.shape;
    return shape.empty() || Shape(shape.begin() + 1, shape.end()).is_known();
  });
}

bool has_counts(const Kernel& kernel) {
  return kernel.open &&
         std::ranges::any_of(kernel.open->nodes(), [](const Node& node) { return node.op == Op::extents; });
}

}  // namespace sylvite
