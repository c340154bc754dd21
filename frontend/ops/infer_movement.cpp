// Type rules of operations that create or move elements.

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "frontend/ops/infer.h"

namespace sylvite {
namespace {

TensorType dense(DType dtype, Shape shape) {
  return {dtype, std::move(shape), {}};
}

}  // namespace

std::size_t checked_axis(const Attributes& attributes, int rank) {
  const std::int64_t axis = attributes.integer("axis");
  if (axis < 0 || axis >= rank) throw ModelError("axis {} is outside a value of rank {}", axis, rank);
  return static_cast<std::size_t>(axis);
}

const std::vector<std::int64_t>& checked_list(const Attributes& attributes, const std::string& name,
                                              std::size_t size, std::int64_t low, std::int64_t high) {
  const std::vector<std::int64_t>& list = attributes.integers(name);
  if (list.size() != size)
    throw ModelError("attribute {} has {} entries, expected {}", name, list.size(), size);
  for (std::int64_t entry : list)
    if (entry < low || entry > high)
      throw ModelError("attribute {} holds {}, expected {} to {}", name, entry, low, high);
  return list;
}

std::vector<Extent> checked_extents(const Attributes& attributes, const std::string& name, std::size_t size,
                                    std::int64_t low, std::int64_t high) {
  std::vector<Extent> list = attributes.extents(name);
  if (list.size() != size)
    throw ModelError("attribute {} has {} entries, expected {}", name, list.size(), size);
  for (const Extent& entry : list)
    if (entry.is_known() && (entry.known() < low || entry.known() > high))
      throw ModelError("attribute {} holds {}, expected {} to {}", name, entry.known(), low, high);
  return list;
}

Shape checked_shape(const Attributes& attributes, const std::string& name) {
  const std::vector<Extent> extents = attributes.extents(name);
  return {extents.begin(), extents.end()};
}

void check_size(const TensorType& type) {
  if (type.is_known()) (void)type.element_count();
}

OutputTypes infer_iota(Op, InputTypes, const Attributes& attributes, Symbols&) {
  const TensorType result =
      dense(parse_dtype(attributes.string("dtype")), checked_shape(attributes, "shape"));
  check_size(result);
  (void)checked_axis(attributes, result.rank());
  if (!is_number(result.dtype)) throw ModelError("iota does not count in {}", dtype_name(result.dtype));
  return {result};
}

OutputTypes infer_extents(Op, InputTypes, const Attributes& attributes, Symbols&) {
  const Shape values = checked_shape(attributes, "values");
  if (values.is_known()) throw ModelError("extents without a symbol are a constant");
  const std::int64_t rank = attributes.integer("rank");
  if (rank != 1 && (values.size() != 1 || rank < 0 || rank > most_dims))
    throw ModelError("{} extents have no rank of {}", values.size(), rank);
  const DType dtype = parse_dtype(attributes.string("dtype"));
  const bool is_fraction = attributes.integer("inverse") != 0 || attributes.has("half");
  if (!is_number(dtype) || (is_fraction && !is_float(dtype)))
    throw ModelError("extents are no {}", dtype_name(dtype));
  return {make_type(dtype, Dims(static_cast<std::size_t>(rank), static_cast<std::int64_t>(values.size())))};
}

OutputTypes infer_reshape(Op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  const TensorType result = dense(inputs[0]->dtype, checked_shape(attributes, "shape"));
  if (!symbols.equal(result.shape.product(), inputs[0]->shape.product())) {
    throw ModelError("{} cannot take the shape {}: other element counts", inputs[0]->to_string(),
                     result.to_string());
  }
  return {result};
}

OutputTypes infer_transpose(Op, InputTypes inputs, const Attributes& attributes, Symbols&) {
  const auto rank = static_cast<std::size_t>(inputs[0]->rank());
  const auto& perm = checked_list(attributes, "perm", rank, 0, inputs[0]->rank() - 1);
  std::vector<bool> seen(rank, false);
  Shape shape;
  for (std::int64_t axis : perm) {
    const auto from = static_cast<std::size_t>(axis);
    if (seen[from]) throw ModelError("attribute perm names axis {} twice", axis);
    seen[from] = true;
    shape.push_back(inputs[0]->shape[from]);
  }
  return {dense(inputs[0]->dtype, std::move(shape))};
}

OutputTypes infer_broadcast_to(Op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  const TensorType result = dense(inputs[0]->dtype, checked_shape(attributes, "shape"));
  check_size(result);
  if (!broadcasts_to(inputs[0]->shape, result.shape, symbols))
    throw ModelError("{} does not broadcast to {}", inputs[0]->to_string(), result.to_string());
  return {result};
}

OutputTypes infer_slice(Op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  const Shape& extents = inputs[0]->shape;
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  const auto starts = checked_extents(attributes, "starts", extents.size(), 0, most);
  const auto sizes = checked_extents(attributes, "sizes", extents.size(), 0, most);
  const auto& steps = checked_list(attributes, "steps", extents.size(), -extent_limit, extent_limit);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (steps[i] == 0) throw ModelError("attribute steps holds 0");
    if (sizes[i] == 0) continue;
    const Extent room =
        steps[i] > 0 ? floor_div(extents[i] - 1 - starts[i], steps[i]) : floor_div(starts[i], -steps[i]);
    const bool start_fits = symbols.at_least(extents[i] - 1, starts[i]) && symbols.at_least(starts[i], 0);
    if (!start_fits || !symbols.at_least(sizes[i], 0) || !symbols.at_least(room, sizes[i] - 1)) {
      throw ModelError("start {}, size {}, step {} leave axis {} of {}", starts[i].to_string(),
                       sizes[i].to_string(), steps[i], i, inputs[0]->to_string());
    }
  }
  return {dense(inputs[0]->dtype, Shape(sizes.begin(), sizes.end()))};
}

namespace {

/// What pad takes of attributes beside low and high.
std::vector<std::int64_t> checked_interior(const Attributes& attributes, std::size_t rank) {
  const std::string& mode = attributes.string("mode");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    throw ModelError("attribute mode is '{}', expected constant, reflect, edge or wrap", mode);
  if (attributes.integers("interior").empty()) return Dims(rank, 0);
  Dims interior = checked_list(attributes, "interior", rank, 0, extent_limit);
  const bool is_used = std::ranges::any_of(interior, [](std::int64_t i) { return i > 0; });
  if (is_used && mode != "constant") throw ModelError("interior padding needs mode constant, got {}", mode);
  return interior;
}

}  // namespace

OutputTypes infer_pad(Op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  const TensorType& input = *inputs[0];
  const auto rank = static_cast<std::size_t>(input.rank());
  const auto low = checked_extents(attributes, "low", rank, -extent_limit, extent_limit);
  const auto high = checked_extents(attributes, "high", rank, -extent_limit, extent_limit);
  const Dims interior = checked_interior(attributes, rank);
  const bool is_constant = attributes.string("mode") == "constant";
  if (is_given(inputs, 1)) {
    if (!symbols.equal(inputs[1]->shape.product(), 1))
      throw ModelError("the pad value is {}, expected one element", inputs[1]->to_string());
    require_same_dtype(input, *inputs[1], "the input and the pad value");
  }
  Shape result = input.shape;
  for (std::size_t i = 0; i < rank; ++i) {
    const Extent extent = result[i];
    if (extent.constant() > extent_limit)
      throw UnsupportedError("pad of an axis of {} elements", extent.to_string());
    result[i] = low[i] + high[i] + extent;
    if (interior[i] > 0) result[i] += max(extent - 1, 0) * interior[i];
    if (!symbols.at_least(result[i], 0))
      throw ModelError("low {} and high {} cut off more than axis {} has", low[i].to_string(),
                       high[i].to_string(), i);
    if (!is_constant && result[i] != 0 && !symbols.at_least(extent, 1))
      throw ModelError("mode {} has nothing to repeat on axis {} of {}", attributes.string("mode"), i,
                       input.to_string());
  }
  const TensorType padded = dense(input.dtype, result);
  check_size(padded);
  return {padded};
}

OutputTypes infer_concat(Op, InputTypes inputs, const Attributes& attributes, Symbols& symbols) {
  TensorType result = *inputs[0];
  const std::size_t axis = checked_axis(attributes, result.rank());
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (!is_given(inputs, i)) throw ModelError("input {} is absent", i);
    const TensorType& input = *inputs[i];
    require_same_dtype(result, input, "the inputs");
    Shape expected = result.shape;
    if (input.rank() == result.rank()) expected[axis] = input.shape[axis];
    if (!symbols.equal(input.shape, expected))
      throw ModelError("{} and {} differ outside axis {}", inputs[0]->to_string(), input.to_string(), axis);
    result.shape[axis] += input.shape[axis];
  }
  check_size(result);
  return {result};
}

OutputTypes infer_to_layout(Op, InputTypes inputs, const Attributes& attributes, Symbols&) {
  const std::int64_t block = attributes.integer("block");
  std::int64_t most = 4096;  // a large block of few channels is mostly padding
  const bool has_channels = inputs[0]->rank() >= 2;
  if (has_channels && inputs[0]->shape[1].is_known()) most = std::max(most, inputs[0]->shape[1].known());
  if (block < 0 || block > most) throw ModelError("attribute block is {}, expected 0 to {}", block, most);
  if (block > 0 && !has_channels)
    throw ModelError("{} has no channel dimension to block", inputs[0]->to_string());
  TensorType result = *inputs[0];
  result.layout.channel_block = static_cast<int>(block);
  return {result};
}

}  // namespace sylvite
