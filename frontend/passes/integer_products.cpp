// Matmuls of values that 8-bit integers stand for multiply the integers, exactly, and scale their sums:
//   matmul((a - za) sa, (b - zb) sb)   ->   f32(matmul(a - za, b - zb)) (sa sb)
// The differences are i16, or i8 where b is a constant whose differences fit. It comes ahead of the folding of constants,
// which would make weights of f32.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "frontend/graph/attribute_text.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/made_weights.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "frontend/passes/pass_list.h"
#include "frontend/values/storage.h"
#include "frontend/values/strided.h"

namespace sylvite {
namespace {

/// A value that is (quantized - zero) scale, which broadcast.
struct Dequantized {
  ValueId quantized = no_value;  ///< of 8 bits or fewer
  ValueId zero = no_value;       ///< in the range of 8 bits, or absent
  ValueId scale = no_value;      ///< f32
};

bool is_step(DType dtype) {
  const bool is_integer = is_signed_integer(dtype) || is_unsigned_integer(dtype);
  return (is_integer || is_narrow(dtype)) && !is_narrow_float(dtype) && dtype_bits(dtype) <= 8;
}

/// What was cast to f32 from a narrow integer, else no_value.
ValueId narrow_source(const Graph& graph, ValueId id) {
  const Node* cast = producer_if(graph, id, Op::cast);
  return cast != nullptr && is_step(graph.type(cast->inputs[0]).dtype) ? cast->inputs[0] : no_value;
}

/// What constant numbers are as i16, if they are integers of 8 bits; else no_value.
ValueId narrow_constant(Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (!value.constant) return no_value;
  const std::vector<double> numbers = decode<double>(*value.constant);
  const bool are_steps =
      std::ranges::all_of(numbers, [](double x) { return x >= -128 && x <= 255 && x == std::trunc(x); });
  if (!are_steps) return no_value;
  Tensor steps = encode(DType::i16, value.constant->dims(), numbers);
  return graph.add_constant(std::move(steps), value.name + "_steps");
}

/// A value that is quantized - zero in f32 or i16, or narrow itself; its scale is left open.
std::optional<Dequantized> difference(Graph& graph, ValueId id) {
  if (is_step(graph.type(id).dtype)) return Dequantized{id};
  if (const ValueId whole = narrow_source(graph, id); whole != no_value) return Dequantized{whole};
  const Node* sub = producer_if(graph, id, Op::sub);
  if (sub == nullptr) return std::nullopt;
  const ValueId subtracted = sub->inputs[1];
  Dequantized result{narrow_source(graph, sub->inputs[0]), narrow_source(graph, subtracted)};
  if (result.zero == no_value) result.zero = narrow_constant(graph, subtracted);
  if (result.quantized == no_value || result.zero == no_value) return std::nullopt;
  return result;
}

std::optional<Dequantized> dequantized_product(Graph& graph, ValueId factor, ValueId scale) {
  if (graph.type(scale).dtype != DType::f32) return std::nullopt;
  std::optional<Dequantized> result = difference(graph, factor);
  if (result) result->scale = scale;
  return result;
}

/// The same view of another value; of a constant, a constant.
ValueId add_view(Graph& graph, ValueId id, const Node& view, Attributes attributes) {
  const ValueId result = graph.add(view.op, {id}, attributes);
  if (!graph.is_constant(id)) return result;
  const Tensor source = *graph.value(id).constant;
  const TensorType type = graph.type(result);
  const std::string recipe =
      fmt::format("{} {} {}", op_info(view.op).name, attributes_text(attributes), type.to_string());
  const std::vector<const Tensor*> inputs = {&source};
  const std::vector<TensorType> types = {type};
  const auto make = [&] { return evaluate_node(view.op, inputs, attributes, types).at(0); };
  return graph.add_constant(made_of(recipe, {source}, make), graph.value(id).name + "_view");
}

/// Of a parameter, which has the rank of what it belongs to: dims of one element are not sliced.
Attributes attributes_for(const Graph& graph, ValueId id, const Node& view) {
  if (view.op != Op::slice) return view.attributes;
  Attributes attributes = view.attributes;
  Dims starts = attributes.integers("starts"), sizes = attributes.integers("sizes"),
       steps = attributes.integers("steps");
  const Shape& shape = graph.type(id).shape;
  for (std::size_t d = 0; d < starts.size(); ++d) {
    if (shape[d] != 1) continue;
    starts[d] = 0;
    sizes[d] = steps[d] = 1;
  }
  return {{"starts", starts}, {"sizes", sizes}, {"steps", steps}};
}

/// Parameters of one element lose their dims; others get the rank of what they belong to, and its view.
ValueId viewed_parameter(Graph& graph, ValueId id, const Node& view, const TensorType& of) {
  if (id == no_value) return id;
  if (graph.type(id).element_count() == 1) return add_reshape(graph, id, {});
  Dims dims = graph.type(id).dims();
  dims.insert(dims.begin(), static_cast<std::size_t>(of.rank()) - dims.size(), 1);
  const ValueId whole = add_reshape(graph, id, dims);
  if (view.op != Op::reshape) return add_view(graph, whole, view, attributes_for(graph, whole, view));
  dims.erase(dims.begin());
  return add_reshape(graph, whole, dims);
}

/// Views that parameters follow: transposes, slices, and reshapes that drop a first dim of one.
const Node* known_view(const Graph& graph, ValueId id) {
  const NodeId producer = graph.value(id).producer;
  if (producer == no_node) return nullptr;
  const Node& node = graph.node(producer);
  if (node.op == Op::transpose || node.op == Op::slice) return &node;
  if (node.op != Op::reshape) return nullptr;
  const Shape& from = graph.type(node.inputs[0]).shape;
  const Shape& to = graph.type(id).shape;
  const bool drops =
      from.size() == to.size() + 1 && from[0] == 1 && std::equal(to.begin(), to.end(), from.begin() + 1);
  return drops ? &node : nullptr;
}

/// Looks through views.
std::optional<Dequantized> dequantized(Graph& graph, ValueId id) {
  if (const Node* found = known_view(graph, id)) {
    const Node view = *found;
    const TensorType type = graph.type(view.inputs[0]);
    std::optional<Dequantized> inner = dequantized(graph, view.inputs[0]);
    if (!inner) return std::nullopt;
    inner->zero = viewed_parameter(graph, inner->zero, view, type);
    inner->scale = viewed_parameter(graph, inner->scale, view, type);
    inner->quantized = add_view(graph, inner->quantized, view, view.attributes);
    return inner;
  }
  const Node* mul = producer_if(graph, id, Op::mul);
  if (mul == nullptr || graph.type(id).dtype != DType::f32) return std::nullopt;
  const Node node = *mul;
  std::optional<Dequantized> found;
  (void)either_order(node, [&](ValueId first, ValueId second) {
    found = dequantized_product(graph, first, second);
    if (found && graph.type(found->quantized).shape != graph.type(id).shape) found.reset();
    return found.has_value();
  });
  return found;
}

/// Is the parameter one number along the dim that is `from_end`th from the end?
bool is_even_along(const Graph& graph, ValueId id, int from_end) {
  const TensorType& type = graph.type(id);
  return type.rank() < from_end || type.shape[static_cast<std::size_t>(type.rank() - from_end)] == 1;
}

std::vector<std::int16_t> steps_of(const Tensor& tensor) {
  if (tensor.dtype() == DType::i8) {
    const std::span<const std::int8_t> steps = tensor.view<std::int8_t>();
    return {steps.begin(), steps.end()};
  }
  if (tensor.dtype() == DType::u8) {
    const std::span<const std::uint8_t> steps = tensor.view<std::uint8_t>();
    return {steps.begin(), steps.end()};
  }
  const std::vector<std::int64_t> steps = decode<std::int64_t>(tensor);
  return {steps.begin(), steps.end()};
}

Tensor differences(const Tensor& quantized, const Tensor* zero) {
  std::vector<std::int16_t> steps = steps_of(quantized);
  if (zero != nullptr)
    std::ranges::transform(steps, steps_of(expand(*zero, quantized.dims())), steps.begin(), std::minus<>());
  const auto [least, most] = std::ranges::minmax(steps);
  if (least >= -128 && most <= 127) {
    Tensor narrow(DType::i8, quantized.dims());
    std::ranges::copy(steps, narrow.mutable_view<std::int8_t>().begin());
    return narrow;
  }
  Tensor wide(DType::i16, quantized.dims());
  std::ranges::copy(steps, wide.mutable_view<std::int16_t>().begin());
  return wide;
}

/// The differences of a constant that is not empty, as narrow as they fit.
Tensor constant_steps(const Tensor& quantized, const Tensor* zero) {
  const bool is_whole =
      zero == nullptr || std::ranges::all_of(steps_of(*zero), [](std::int16_t step) { return step == 0; });
  if (is_whole && quantized.dtype() == DType::i8) return quantized;
  std::vector<Tensor> sources = {quantized};
  if (!is_whole) sources.push_back(*zero);
  return made_of("steps", sources, [&] { return differences(quantized, is_whole ? nullptr : zero); });
}

/// quantized - zero as i16, or as i8 where it may be.
ValueId add_steps(Graph& graph, const Dequantized& value, bool may_be_i8) {
  const Tensor* zero = nullptr;
  if (value.zero != no_value && graph.is_constant(value.zero)) zero = &*graph.value(value.zero).constant;
  const bool is_known = value.zero == no_value || zero != nullptr;
  if (may_be_i8 && is_known && graph.is_constant(value.quantized)) {
    const std::string name = graph.value(value.quantized).name + "_steps";
    return graph.add_constant(constant_steps(*graph.value(value.quantized).constant, zero), name);
  }
  const ValueId wide = add_cast(graph, value.quantized, DType::i16);
  return value.zero == no_value ? wide : graph.add(Op::sub, {wide, add_cast(graph, value.zero, DType::i16)});
}

constexpr std::int64_t longest_fold =
    (std::int64_t{1} << 31) / (std::int64_t{383} * 383);  ///< whose sums fit i32

Tensor number(DType dtype, double value) {
  Tensor tensor(dtype, {});
  tensor.set_double(0, value);
  return tensor;
}

/// Is a zero point absent, or 0?
bool is_nothing(const Graph& graph, ValueId zero) {
  return zero == no_value || is_scalar(graph, zero, 0);
}

/// a - za as bytes without a sign less a zero point: what i8 counts from -128 they count from 0.
struct ByteSteps {
  ValueId steps = no_value;
  ValueId zero = no_value;  ///< i32; no_value for 0
};
ByteSteps add_bytes(Graph& graph, const Dequantized& a) {
  constexpr double offset = 128;
  const ValueId zero = is_nothing(graph, a.zero) ? no_value : add_cast(graph, a.zero, DType::i32);
  if (graph.type(a.quantized).dtype == DType::u8) return {a.quantized, zero};
  const ValueId wide = graph.add(
      Op::add, {add_cast(graph, a.quantized, DType::i16), graph.add_constant(number(DType::i16, offset))});
  const ValueId shift = graph.add_constant(number(DType::i32, offset));
  return {add_cast(graph, wide, DType::u8), zero == no_value ? shift : graph.add(Op::add, {zero, shift})};
}

/// The sums of the columns of matrices of i8, as i32[..., 1, columns].
Tensor column_sums(const Tensor& matrix) {
  Dims dims = matrix.dims();
  const auto columns = static_cast<std::size_t>(dims.back());
  const auto rows = static_cast<std::size_t>(std::exchange(dims[dims.size() - 2], 1));
  Tensor sums(DType::i32, dims);
  const std::span<const std::int8_t> steps = matrix.view<std::int8_t>();
  const std::span<std::int32_t> totals = sums.mutable_view<std::int32_t>();
  for (std::size_t row = 0; row * columns < steps.size(); ++row)
    for (std::size_t column = 0; column < columns; ++column)
      totals[row / rows * columns + column] += steps[row * columns + column];
  return sums;
}

/// The product of a's differences and b's, in i32. Of bytes four are multiplied at once, and a zero point is taken off
/// the sums; others are multiplied in pairs.
ValueId add_product(Graph& graph, const Dequantized& a, const Dequantized& b, const std::string& name) {
  const std::int64_t depth = graph.type(a.quantized).shape.back().known();
  const ValueId right = add_steps(graph, b, true);
  const bool has_bytes = graph.is_constant(right) && graph.type(right).dtype == DType::i8 && depth % 4 == 0 &&
                         dtype_bits(graph.type(a.quantized).dtype) == 8;
  if (!has_bytes) return graph.add(Op::matmul, {add_steps(graph, a, false), right}, {}, name);
  const ByteSteps left = add_bytes(graph, a);
  const ValueId product = graph.add(Op::matmul, {left.steps, right}, {}, name);
  if (left.zero == no_value) return product;
  const Tensor matrix = *graph.value(right).constant;
  const ValueId sums =
      graph.add_constant(made_of("column sums", {matrix}, [&] { return column_sums(matrix); }),
                         graph.value(right).name + "_sums");
  return graph.add(Op::sub, {product, graph.add(Op::mul, {left.zero, sums})});
}

/// Operands whose sums fit i32, in which their zero points and scales change by row and by column alone.
bool multiply(const Graph& graph, const Dequantized& a, const Dequantized& b) {
  const Extent& depth = graph.type(a.quantized).shape.back();
  const auto is_even = [&](ValueId id, int from_end) {
    return id == no_value || is_even_along(graph, id, from_end);
  };
  return depth.is_known() && depth.known() % 2 == 0 && depth.known() > 0 && depth.known() <= longest_fold &&
         graph.type(b.quantized).element_count() > 0 && is_even(a.scale, 1) && is_even(a.zero, 1) &&
         is_even(b.scale, 2);
}

bool rewrite_matmul(GraphRewriter& rewriter, const Node& node) {
  const DType type = rewriter.source().type(node.outputs[0]).dtype;
  if (type != DType::f32 && type != DType::i32) return false;
  Graph& graph = rewriter.graph();
  const auto read = type == DType::f32 ? dequantized : difference;
  if (is_step(graph.type(rewriter.mapped(node.inputs[0])).dtype)) return false;
  const std::optional<Dequantized> a = read(graph, rewriter.mapped(node.inputs[0]));
  const std::optional<Dequantized> b = a ? read(graph, rewriter.mapped(node.inputs[1])) : std::nullopt;
  if (!b || !multiply(graph, *a, *b)) return false;
  const ValueId product = add_product(graph, *a, *b, node.name);
  if (type == DType::i32) {
    rewriter.set(node.outputs[0], product);
    return true;
  }
  const ValueId scale = graph.add(Op::mul, {a->scale, b->scale});
  rewriter.replace(node, Op::mul, {add_cast(graph, product, DType::f32), scale});
  return true;
}

/// Convolutions whose products templates make: of channels that are multiplied together, or of so few that zeros are put
/// beside them.
bool convolve(const Graph& graph, const Node& node, const Dequantized& x, const Dequantized& w) {
  constexpr std::int64_t few_channels = 4;
  const TensorType& filter = graph.type(w.quantized);
  const auto is_one = [&](ValueId id) { return id == no_value || graph.type(id).element_count() == 1; };
  const auto is_per_output = [&](ValueId id) {
    return is_one(id) ||
           (graph.type(id).rank() == filter.rank() && graph.type(id).shape[0] == filter.shape[0] &&
            graph.type(id).element_count() == filter.dims()[0]);
  };
  if (filter.rank() != 4 || !graph.is_constant(w.quantized) || node.attributes.integer("groups") != 1 ||
      !is_one(x.zero) || !is_one(x.scale) || !is_per_output(w.scale))
    return false;
  const std::int64_t channels = filter.dims()[1];
  const std::int64_t products = filter.element_count() / std::max<std::int64_t>(filter.dims()[0], 1);
  return (channels % 4 == 0 || channels <= few_channels) && products > 0 && products <= longest_fold;
}

/// The sums of filters of i8, as i32[1, filters, 1, 1].
Tensor filter_sums(const Tensor& filter) {
  const std::int64_t filters = filter.dims()[0];
  Tensor sums(DType::i32, {1, filters, 1, 1});
  const std::span<const std::int8_t> steps = filter.view<std::int8_t>();
  const std::span<std::int32_t> totals = sums.mutable_view<std::int32_t>();
  const std::size_t each = steps.size() / totals.size();
  for (std::size_t i = 0; i < totals.size(); ++i)
    for (const std::int8_t step : steps.subspan(i * each, each)) totals[i] += step;
  return sums;
}

/// An image with its borders beside it, which stand for 0, and the convolution that then needs none.
ValueId add_borders(Graph& graph, ValueId image, ValueId zero, Attributes& conv) {
  const Dims pads = conv.integers("pads");
  if (std::ranges::all_of(pads, [](std::int64_t pad) { return pad == 0; })) return image;
  const auto half = static_cast<std::ptrdiff_t>(pads.size() / 2);
  Dims low = {0, 0}, high = {0, 0};
  low.insert(low.end(), pads.begin(), pads.begin() + half);
  high.insert(high.end(), pads.begin() + half, pads.end());
  conv.set("pads", Dims(pads.size(), 0));
  const ValueId value = add_reshape(graph, add_cast(graph, zero, DType::u8), {});
  return graph.add(Op::pad, {image, value}, {{"low", low}, {"high", high}});
}

/// The sums as i32. Of bytes a zero point is taken off the sums, and surrounds the image.
ValueId add_convolution(Graph& graph, const Node& node, const Dequantized& x, const Dequantized& w) {
  const ValueId filter = add_steps(graph, w, true);
  const bool has_bytes =
      graph.type(filter).dtype == DType::i8 && dtype_bits(graph.type(x.quantized).dtype) == 8;
  if (!has_bytes)
    return graph.add(Op::conv, {add_steps(graph, x, false), filter}, node.attributes, node.name);
  const ByteSteps bytes = add_bytes(graph, x);
  if (bytes.zero == no_value) return graph.add(Op::conv, {bytes.steps, filter}, node.attributes, node.name);
  Attributes attributes = node.attributes;
  const ValueId image = add_borders(graph, bytes.steps, bytes.zero, attributes);
  const ValueId product = graph.add(Op::conv, {image, filter}, attributes, node.name);
  const Tensor taps = *graph.value(filter).constant;
  const ValueId sums = graph.add_constant(made_of("filter sums", {taps}, [&] { return filter_sums(taps); }),
                                          graph.value(filter).name + "_sums");
  return graph.add(Op::sub, {product, graph.add(Op::mul, {bytes.zero, sums})});
}

bool rewrite_conv(GraphRewriter& rewriter, const Node& node) {
  const TensorType& type = rewriter.source().type(node.outputs[0]);
  if (type.dtype != DType::f32 && type.dtype != DType::i32) return false;
  Graph& graph = rewriter.graph();
  const auto read = type.dtype == DType::f32 ? dequantized : difference;
  if (is_step(graph.type(rewriter.mapped(node.inputs[0])).dtype)) return false;
  const std::optional<Dequantized> x = read(graph, rewriter.mapped(node.inputs[0]));
  const std::optional<Dequantized> w = x ? read(graph, rewriter.mapped(node.inputs[1])) : std::nullopt;
  if (!w || !convolve(graph, node, *x, *w)) return false;
  const ValueId sums = add_convolution(graph, node, *x, *w);
  if (type.dtype == DType::i32) {
    rewriter.set(node.outputs[0], sums);
    return true;
  }
  const auto per_channel = [&](ValueId id) {
    return graph.type(id).element_count() == 1
               ? add_reshape(graph, id, {})
               : add_reshape(graph, id, {1, graph.type(id).element_count(), 1, 1});
  };
  const ValueId scale = graph.add(Op::mul, {add_reshape(graph, x->scale, {}), per_channel(w->scale)});
  const ValueId result = add_cast(graph, sums, DType::f32);
  const ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : no_value;
  if (bias == no_value) {
    rewriter.replace(node, Op::mul, {result, scale});
    return true;
  }
  const ValueId scaled = graph.add(Op::mul, {result, scale});
  rewriter.replace(node, Op::add, {scaled, per_channel(rewriter.mapped(bias))});
  return true;
}

bool rewrite_product(GraphRewriter& rewriter, const Node& node) {
  if (node.op == Op::matmul) return rewrite_matmul(rewriter, node);
  return node.op == Op::conv && rewrite_conv(rewriter, node);
}

}  // namespace

Graph integer_products(const Graph& graph) {
  return rewrite_nodes(graph, rewrite_product);
}

}  // namespace sylvite
