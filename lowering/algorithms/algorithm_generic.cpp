#include <algorithm>

#include "base/error.h"
#include "frontend/ops/op_table.h"
#include "lowering/algorithms/algorithm_forms.h"
#include "lowering/algorithms/algorithm_nodes.h"
#include "lowering/algorithms/halide_math.h"

namespace sylvite {
namespace {

using Definer = void (*)(AlgorithmBuilder&, const Node&);

Definer definer_of(Op op) {
  switch (op) {
    case Op::iota:
      return define_iota;
    case Op::gather:
    case Op::gather_elements:
    case Op::gather_nd:
      return define_gather;
    case Op::scatter_elements:
    case Op::scatter_nd:
    case Op::write_elements:
    case Op::write_nd:
      return define_scatter;
    case Op::reduce_sum:
    case Op::reduce_max:
    case Op::reduce_min:
    case Op::reduce_prod:
      return define_reduction;
    case Op::arg_max:
    case Op::arg_min:
      return define_arg_reduction;
    case Op::cumsum:
    case Op::cumprod:
      return define_scan;
    case Op::top_k:
      return define_top_k;
    case Op::softmax:
    case Op::log_softmax:
      return define_softmax;
    case Op::layer_norm:
    case Op::rms_norm:
      return define_layer_norm;
    case Op::batch_norm:
      return define_batch_norm;
    case Op::matmul:
      return define_matmul;
    case Op::quantized_matmul:
      return define_quantized_matmul;
    case Op::matmul_bits:
    case Op::quantized_matmul_bits:
      return define_matmul_bits;
    case Op::conv:
      return define_conv;
    case Op::filter_gradient:
      return define_filter_gradient;
    case Op::max_pool_gradient:
      return define_max_pool_gradient;
    case Op::max_pool:
    case Op::avg_pool:
      return define_pool;
    case Op::attention:
      return define_attention;
    case Op::attention_sums:
      return define_attention_sums;
    case Op::attention_gradient:
      return define_attention_gradient;
    default:
      break;
  }
  if (has_trait(op, OpTrait::pointwise)) return define_pointwise;
  if (has_trait(op, OpTrait::movement)) return define_movement;
  throw UnsupportedError("operation {} has no Halide algorithm", op_info(op).name);
}

}  // namespace

void AlgorithmBuilder::define_node(const Node& node) {
  if (node.op == Op::extents) return;  // read as constants are
  definer_of(node.op)(*this, node);
}

Coordinate shifted(const Coordinate& coordinate, std::int64_t offset) {
  if (offset == 0) return coordinate;
  Coordinate result(coordinate.full + static_cast<int>(offset));
  if (coordinate.block > 0 && offset % coordinate.block == 0) {
    result.block = coordinate.block;
    result.inner = coordinate.inner;
    result.outer = coordinate.outer + static_cast<int>(offset / coordinate.block);
  }
  return result;
}

std::vector<Packing> generic_packings(const Kernel& kernel, const Form& /*form*/) {
  return layout_packings(kernel);
}

Algorithm build_generic(const Kernel& kernel, const Form& /*form*/) {
  AlgorithmBuilder builder(kernel, layout_packings(kernel));
  builder.define_rest();
  return builder.finish();
}

namespace {

bool is_turned(const Node& node) {
  return node.op == Op::to_layout || node.op == Op::transpose;
}

/// Where the elements of a turned node are in what it reads.
Coordinates turned_coordinates(const Node& node, const TensorType& type) {
  const Coordinates at = AlgorithmBuilder::coordinates_of(type);
  if (node.op != Op::transpose) return at;
  const std::vector<std::int64_t>& perm = node.attributes.integers("perm");
  Coordinates from(at.size());
  for (std::size_t d = 0; d < at.size(); ++d) from[static_cast<std::size_t>(perm[d])] = at[d];
  return from;
}

}  // namespace

Algorithm build_tiles(const Kernel& kernel, const Form& /*form*/) {
  const std::vector<Node>& nodes = kernel.body.nodes();
  const auto turned = std::find_if(nodes.rbegin(), nodes.rend(), is_turned);
  if (turned == nodes.rend())
    throw UnsupportedError("form tiles: the kernel has no change of layout and no transpose");
  const Node& node = *turned;
  AlgorithmBuilder builder(kernel, layout_packings(kernel));
  builder.define_before(static_cast<NodeId>(nodes.rend() - turned) - 1);
  const ValueId id = node.outputs.front();
  const TensorType& type = builder.type(id);
  Halide::Func tile = builder.stage(builder.name(id) + "_tile");
  tile(AlgorithmBuilder::vars_of(type)) =
      builder.read_stored(node.inputs.front(), turned_coordinates(node, type));
  builder.define(id, [&](const Coordinates& at) { return tile(AlgorithmBuilder::arguments_of(type, at)); });
  builder.define_rest();
  return builder.finish();
}

Algorithm build_device(const Kernel& kernel, const Form& form) {
  const DeviceMath device_math;
  return build_generic(kernel, form);
}

bool results_lie_alike(const Graph& body) {
  const TensorType& first = body.type(body.outputs.front());
  return std::ranges::all_of(body.outputs, [&](ValueId output) {
    return body.type(output).shape == first.shape && body.type(output).layout == first.layout;
  });
}

Algorithm build_together(const Kernel& kernel, const Form& /*form*/) {
  if (!results_lie_alike(kernel.body))
    throw UnsupportedError("form together: the kernel's results do not lie alike");
  AlgorithmBuilder builder(kernel, layout_packings(kernel));
  builder.define_rest();
  return builder.finish_together();
}

Algorithm build_device_together(const Kernel& kernel, const Form& form) {
  const DeviceMath device_math;
  return build_together(kernel, form);
}

}  // namespace sylvite
