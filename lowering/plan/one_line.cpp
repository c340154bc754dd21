#include "lowering/plan/one_line.h"

#include <algorithm>

#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

bool are_all(const Node& node, const char* name, std::int64_t value) {
  return std::ranges::all_of(node.attributes.integers(name),
                             [value](std::int64_t each) { return each == value; });
}

/// REQUIRES a convolution.
bool has_one_tap(const Graph& body, const Node& conv) {
  const Dims window = body.type(conv.inputs[1]).dims();
  return window.size() == 4 && window[2] * window[3] == 1 && are_all(conv, "strides", 1) &&
         are_all(conv, "pads", 0);
}

bool looks_at_pixels_apart(const Graph& body, const Node& node) {
  if (node.op == Op::conv) return has_one_tap(body, node);
  return node.op == Op::to_layout || has_trait(node.op, OpTrait::pointwise);
}

/// One number for each channel.
bool is_only_bias(const Graph& body, ValueId id) {
  const auto reads_alike = [&](const Node& node) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] == id && (node.op != Op::conv || i != 2)) return false;
    return true;
  };
  return body.type(id).rank() == 1 && std::ranges::all_of(body.nodes(), reads_alike);
}

TensorType one_line_of(const TensorType& image) {
  Dims dims = image.dims();
  dims[3] *= dims[2];
  dims[2] = 1;
  return {image.dtype, Shape(dims), image.layout};
}

}  // namespace

bool is_one_line_of(const TensorType& line, const TensorType& image) {
  return line.rank() == 4 && image.rank() == 4 && line.is_known() && image.is_known() &&
         line == one_line_of(image);
}

std::optional<Kernel> as_one_line(const Kernel& kernel) {
  const Graph& body = kernel.body;
  if (kernel.anchor == no_node || body.node(kernel.anchor).op != Op::conv) return std::nullopt;
  const auto is_apart = [&](const Node& node) { return looks_at_pixels_apart(body, node); };
  if (!std::ranges::all_of(body.nodes(), is_apart)) return std::nullopt;
  const Dims image = body.type(body.node(kernel.anchor).outputs[0]).dims();
  if (image.size() != 4 || image[2] == 1) return std::nullopt;
  Graph lines = body;
  for (ValueId id = 0; id < static_cast<ValueId>(body.values().size()); ++id) {
    TensorType& type = lines.value(id).type;
    const Dims dims = type.dims();
    const bool is_image = dims.size() == 4 && dims[2] == image[2] && dims[3] == image[3];
    if (is_only_bias(body, id)) continue;
    if (!is_image && type.element_count() != 1 && !(dims.size() == 4 && dims[2] * dims[3] == 1))
      return std::nullopt;
    if (is_image) type = one_line_of(type);
  }
  return make_kernel(lines, kernel.input_is_weight);
}

Kernel in_one_line(const Kernel& kernel) {
  return as_one_line(kernel).value_or(kernel);
}

}  // namespace sylvite
