#include "lowering/passes/images.h"

#include <algorithm>
#include <numeric>

#include "base/rounding.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"

namespace sylvite {

bool is_image(const TensorType& type) {
  constexpr std::size_t of_images = 4, of_volumes = 5;
  return type.shape.size() == of_images || type.shape.size() == of_volumes;
}

bool is_for_tensor_cores(DType dtype, bool tf32) {
  return dtype == DType::bf16 || dtype == DType::f16 || (tf32 && dtype == DType::f32);
}

std::int64_t elements_of_vector(DType dtype) {
  return 16 / static_cast<std::int64_t>(dtype_size(dtype));
}

bool may_lie_innermost(const TensorType& type, bool tf32) {
  return is_for_tensor_cores(type.dtype, tf32) && is_image(type) && type.element_count() != 0 &&
         type.dims()[1] % 4 == 0;
}

Dims pixel_axes(std::size_t rank) {
  Dims axes(rank - 2);
  std::iota(axes.begin(), axes.end(), 2);
  return axes;
}

Dims channels_behind(std::size_t rank) {
  Dims perm = channels_behind();
  while (perm.size() < rank) perm.insert(perm.end() - 1, static_cast<std::int64_t>(perm.size()));
  return perm;
}

Dims channels_ahead(std::size_t rank) {
  Dims perm = channels_ahead();
  for (; perm.size() < rank; ++perm[1]) perm.push_back(perm[1]);
  return perm;
}

IdMap<bool> innermost_images(const Graph& graph, bool tf32) {
  IdMap<bool> images(graph.values().size(), false);
  const auto is_one = [&](ValueId id) { return id != no_value && images[id]; };
  const auto is_made = [&](const Node& node) {
    if (node.op == Op::conv) return true;
    if (node.op == Op::concat)
      return node.attributes.integer("axis") == 1 && std::ranges::all_of(node.inputs, is_one);
    if (has_trait(node.op, OpTrait::pointwise)) return std::ranges::any_of(node.inputs, is_one);
    if (node.op == Op::slice) return is_one(node.inputs[0]);
    // Of groups of channels, as norm_groups makes them: such an image lies as the one that is normed.
    if (node.op == Op::layer_norm) return node.attributes.has("groups") && is_one(node.inputs[0]);
    return !has_trait(node.op, OpTrait::reduction) && leaves_channels(graph, node) && is_one(node.inputs[0]);
  };
  for (const Node& node : graph.nodes())
    if (node.outputs.size() == 1 && !node.inputs.empty() &&
        may_lie_innermost(graph.type(node.outputs[0]), tf32))
      images[node.outputs[0]] = is_made(node);
  return images;
}

IdMap<bool> read_by_convolutions(const Graph& graph) {
  IdMap<bool> read(graph.values().size(), false);
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (node->op == Op::conv) read[node->inputs[0]] = true;
    if (node->outputs.size() != 1 || node->inputs.empty() || !read[node->outputs[0]]) continue;
    const bool joins = node->op == Op::concat && node->attributes.integer("axis") == 1;
    const bool works = has_trait(node->op, OpTrait::pointwise) || leaves_channels(graph, *node);
    if (!joins && !works) continue;
    for (const ValueId id : node->inputs)
      if (id != no_value && graph.type(id).rank() == graph.type(node->outputs[0]).rank()) read[id] = true;
  }
  return read;
}

bool leaves_channels(const Graph& graph, const Node& node) {
  const TensorType& type = graph.type(node.inputs[0]);
  if (!is_image(type)) return false;
  const auto is_zero_at_channels = [&](const char* name) {
    const Dims& values = node.attributes.integers(name);
    return values.empty() || values.at(1) == 0;
  };
  switch (node.op) {
    case Op::max_pool:
    case Op::avg_pool:
      return true;
    case Op::pad:
      return is_zero_at_channels("low") && is_zero_at_channels("high") && is_zero_at_channels("interior");
    case Op::gather:
      return node.attributes.integer("axis") >= 2 && graph.type(node.inputs[1]).rank() == 1;
    case Op::reduce_sum:
    case Op::reduce_max:
    case Op::reduce_min:
      return node.attributes.integer("keepdims") == 1 && !node.attributes.integers("axes").empty() &&
             std::ranges::min(node.attributes.integers("axes")) > 1;
    default:
      return false;
  }
}

namespace {

bool is_integer(DType dtype) {
  return is_signed_integer(dtype) || is_unsigned_integer(dtype);
}

}  // namespace

bool stays_finite(const Graph& graph, const Node& node) {
  const auto type = [&](std::size_t i) { return graph.type(node.inputs[i]); };
  const bool by_number =
      node.op == Op::div && graph.is_constant(node.inputs[1]) && type(1).element_count() == 1;
  const DType to = graph.type(node.outputs[0]).dtype;
  const bool widens = to == DType::f32 && is_half(type(0).dtype);
  const bool has_integers = is_integer(to) || (to == DType::f32 && is_integer(type(0).dtype));
  const bool converts = node.op == Op::cast && (widens || has_integers);
  return has_trait(node.op, OpTrait::finite) || by_number || converts;
}

bool has_few_strips(const Dims& image) {
  constexpr std::int64_t strip = 64;                // channels
  constexpr std::int64_t most_strips = 8;           // of all images: 64 blocks
  constexpr std::int64_t least_elements = 1 << 18;  // of a strip: 8 us of 8 blocks
  const std::int64_t pixels = product(image, 2, image.size());
  return image[0] * ceil_div(image[1], strip) <= most_strips &&
         pixels * std::min(image[1], strip) >= least_elements;
}

ValueId add_group_fold(Graph& graph, Op op, ValueId image, std::int64_t groups) {
  const Dims dims = graph.type(image).dims();
  const Attributes pixels = {{"axes", pixel_axes(dims.size())}, {"keepdims", std::int64_t{1}}};
  const ValueId each = graph.add(op, {image}, pixels);
  const ValueId folded = add_reshape(graph, each, {dims[0], groups, dims[1] / groups});
  if (groups == dims[1]) return folded;
  return graph.add(op, {folded}, {{"axes", Dims{2}}, {"keepdims", std::int64_t{1}}});
}

ValueId add_per_channel(Graph& graph, ValueId groups, const Dims& image) {
  const Dims dims = graph.type(groups).dims();
  const std::int64_t images = dims.at(0), count = dims.at(1);
  Dims to(image.size(), 1);
  to[0] = images;
  if (count != 1) {
    to[1] = image[1];
    if (count != image[1]) {
      const ValueId rows = add_reshape(graph, groups, {images, count, 1});
      groups = graph.add(Op::broadcast_to, {rows}, {{"shape", Dims{images, count, image[1] / count}}});
    }
  }
  return add_reshape(graph, groups, to);
}

ValueId add_zeros_behind(Graph& graph, ValueId id, const Dims& dims) {
  Dims high = graph.type(id).dims();
  if (high == dims) return id;
  for (std::size_t d = 0; d < dims.size(); ++d) high[d] = dims[d] - high[d];
  return graph.add(Op::pad, {id}, {{"low", Dims(dims.size(), 0)}, {"high", high}});
}

Tensor with_zeros_behind(const Tensor& tensor, const Dims& dims) {
  Tensor result(tensor.dtype(), dims);
  const Dims& from = tensor.dims();
  const Dims strides = dense_strides(dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    std::int64_t rest = i, to = 0;
    for (std::size_t d = from.size(); d-- > 0; rest /= from[d]) to += rest % from[d] * strides[d];
    result.set_double(to, tensor.as_double(i));
  }
  return result;
}

}  // namespace sylvite
