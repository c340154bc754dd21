#include "lowering/algorithms/algorithm_builder.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/error.h"
#include "frontend/ops/op_table.h"
#include "lowering/algorithms/halide_types.h"
#include "lowering/plan/storage_order.h"

namespace sylvite {
namespace {

using Halide::Expr;
using Halide::Func;
using Halide::ImageParam;
using Halide::Var;

std::string var_name(std::size_t i) {
  return "d" + std::to_string(i);
}

/// Func vars stand for: innermost channel block (if any), spatial dims reversed, channel blocks, batch.
struct StorageOrder {
  std::vector<int> logical;  ///< per storage dim, innermost first: the logical dim
  std::vector<bool> is_inner;
};

StorageOrder storage_order(const TensorType& type) {
  StorageOrder order;
  if (type.layout.channel_block > 0) {
    order.logical.push_back(1);
    order.is_inner.push_back(true);
  }
  for (int d = type.rank() - 1; d >= 0; --d) {
    order.logical.push_back(d);
    order.is_inner.push_back(false);
  }
  return order;
}

}  // namespace

Coordinate Coordinate::split(const Expr& outer, const Expr& inner, int block, std::int64_t extent) {
  Coordinate result;
  result.outer = outer;
  result.inner = inner;
  result.block = block;
  const Expr full = outer * block + inner;
  result.full = extent % block == 0 ? full : Halide::min(full, static_cast<int>(extent) - 1);
  return result;
}

Halide::RDom open_reduction_domain(const std::vector<Expr>& extents) {
  std::vector<Halide::Internal::ReductionVariable> variables;
  variables.reserve(extents.size());
  for (std::size_t i = 0; i < extents.size(); ++i)
    variables.push_back({"r" + std::to_string(i), Expr(0), extents[i]});
  return Halide::RDom(Halide::Internal::ReductionDomain(variables));
}

Halide::RDom reduction_domain(const std::vector<std::int64_t>& extents) {
  std::vector<Expr> numbers;
  numbers.reserve(extents.size());
  for (const std::int64_t extent : extents) numbers.emplace_back(static_cast<int>(extent));
  return open_reduction_domain(numbers);
}

Expr AlgorithmBuilder::factor(const ExtentFactor& factor) const {
  switch (factor.kind) {
    case ExtentFactor::Kind::symbol: {
      const SymbolTable& table = body().symbols.table;
      return algorithm_.sizes.at(
          static_cast<std::size_t>(std::distance(table.begin(), table.find(factor.name))));
    }
    case ExtentFactor::Kind::quotient:
      return extent(factor.argument) / static_cast<int>(factor.divisor);
    default:
      return Halide::max(extent(factor.argument), 0);
  }
}

Expr AlgorithmBuilder::extent(const Extent& extent) const {
  Expr sum = static_cast<int>(extent.constant());
  for (const Extent::Term& term : extent.terms()) {
    Expr product = static_cast<int>(term.coefficient);
    for (const ExtentFactor& each : term.factors) product = product * factor(each);
    sum = sum + product;
  }
  return Halide::Internal::simplify(sum);
}

template <typename Parameter>
void AlgorithmBuilder::fix_shape(Parameter& parameter, const Shape& stored, bool has_outer_blocks,
                                 bool sets_bounds) const {
  const Shape strides = storage_strides(stored, has_outer_blocks);
  const int rank = static_cast<int>(stored.size());
  for (int d = 0; d < rank; ++d) {
    const auto number = static_cast<std::size_t>(rank - 1 - d);
    auto dim = parameter.dim(d);
    if (sets_bounds) dim.set_bounds(0, extent(stored[number]));
    dim.set_stride(extent(strides[number]));
  }
}

AlgorithmBuilder::AlgorithmBuilder(const Kernel& kernel, std::vector<Packing> packings)
    : kernel_(kernel), packings_(std::move(packings)) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  for (const auto& [name, info] : body().symbols.table) {
    Halide::Param<int>& size = algorithm_.sizes.emplace_back(name);
    size.set_range(static_cast<int>(info.low), static_cast<int>(std::min(info.high, most)));
  }
  for (std::size_t i = 0; i < body().inputs.size(); ++i) {
    const ValueId id = body().inputs[i];
    input_index_[id] = i;
    const Packing& packing = packings_.at(i);
    const Shape stored =
        is_layout(packing, type(id)) ? type(id).storage_shape() : Shape(packing.packed_dims(type(id).dims()));
    ImageParam parameter(halide_type_of(type(id).dtype), static_cast<int>(stored.size()), name(id));
    fix_shape(parameter, stored, is_layout(packing, type(id)) && has_outer_blocks(type(id)));
    algorithm_.inputs.push_back(parameter);
  }
}

const ImageParam& AlgorithmBuilder::parameter(ValueId input) const {
  return algorithm_.inputs.at(input_index_.at(input));
}

std::vector<Var> AlgorithmBuilder::vars_of(const TensorType& type) {
  const std::size_t count = type.shape.size() + (type.layout.channel_block > 0 ? 1 : 0);
  std::vector<Var> vars;
  vars.reserve(count);
  for (std::size_t i = 0; i < count; ++i) vars.emplace_back(var_name(i));
  return vars;
}

Coordinates AlgorithmBuilder::coordinates_of(const TensorType& type) {
  const std::vector<Var> vars = vars_of(type);
  const StorageOrder order = storage_order(type);
  Coordinates at(type.shape.size());
  for (std::size_t d = 0; d < vars.size(); ++d) {
    Coordinate& coordinate = at[static_cast<std::size_t>(order.logical[d])];
    if (order.is_inner[d])
      coordinate.inner = vars[d];
    else if (coordinate.inner.defined())
      coordinate =
          Coordinate::split(vars[d], coordinate.inner, type.layout.channel_block, type.shape[1].known());
    else
      coordinate.full = vars[d];
  }
  return at;
}

std::vector<Expr> AlgorithmBuilder::arguments_of(const TensorType& type, const Coordinates& at) {
  const int block = type.layout.channel_block;
  const StorageOrder order = storage_order(type);
  std::vector<Expr> arguments;
  for (std::size_t d = 0; d < order.logical.size(); ++d) {
    const int logical = order.logical[d];
    const Coordinate& coordinate = at.at(static_cast<std::size_t>(logical));
    const bool is_split = logical == 1 && block > 0;
    if (!is_split)
      arguments.push_back(coordinate.full);
    else if (coordinate.block == block)
      arguments.push_back(order.is_inner[d] ? coordinate.inner : coordinate.outer);
    else
      arguments.push_back(order.is_inner[d] ? coordinate.full % block : coordinate.full / block);
  }
  return arguments;
}

ReducedDims AlgorithmBuilder::reduce_over(const TensorType& type, const std::vector<int>& axes) const {
  const StorageOrder order = storage_order(type);
  const Shape stored = type.storage_shape();
  std::vector<Expr> extents;
  std::vector<std::size_t> variable_of(order.logical.size());
  for (std::size_t d = 0; d < order.logical.size(); ++d) {
    if (std::find(axes.begin(), axes.end(), order.logical[d]) == axes.end()) continue;
    variable_of[d] = extents.size();
    extents.push_back(extent(stored[stored.size() - 1 - d]));
  }
  ReducedDims result{open_reduction_domain(extents), {}};
  for (const int axis : axes) {
    Expr inner;
    Expr outer;
    for (std::size_t d = 0; d < order.logical.size(); ++d)
      if (order.logical[d] == axis)
        (order.is_inner[d] ? inner : outer) = result.domain[static_cast<int>(variable_of[d])];
    if (!inner.defined()) {
      result.at.emplace_back(outer);
      continue;
    }
    const int block = type.layout.channel_block;
    const std::int64_t channels = type.shape[1].known();
    result.at.push_back(Coordinate::split(outer, inner, block, channels));
    if (channels % block != 0) result.domain.where(outer * block + inner < static_cast<int>(channels));
  }
  return result;
}

Expr AlgorithmBuilder::number_of_run(const Node& extents) const {
  const std::vector<Extent> values = extents.attributes.extents("values");
  if (values.size() != 1)
    throw UnsupportedError("{} extents in a kernel, which has one element", values.size());
  const DType dtype = type(extents.outputs[0]).dtype;
  const Halide::Type computed = compute_type_of(dtype);
  const Expr number = extent(values[0]);
  const bool is_inverse = extents.attributes.integer("inverse") != 0;
  const bool is_half = extents.attributes.has("half");
  if (!is_inverse && !is_half) return Halide::cast(computed, number);
  const Expr real = Halide::cast<double>(number);
  const Expr fraction = Halide::cast(computed, is_inverse ? Expr(1.0) / real : real * Expr(0.5));
  return is_converted_to_store(dtype) ? from_storage(to_storage(fraction, dtype), dtype) : fraction;
}

Expr AlgorithmBuilder::read(ValueId id, const Coordinates& at) const {
  const Expr value = read_stored(id, at);
  return value.type().is_bfloat() ? from_storage(value, DType::bf16) : value;
}

Expr AlgorithmBuilder::read_rounded(ValueId id, const Coordinates& at) const {
  const Expr value = read_stored(id, at);
  return type(id).dtype == DType::bf16 ? from_storage(to_storage(value, DType::bf16), DType::bf16) : value;
}

Expr AlgorithmBuilder::read_stored(ValueId id, const Coordinates& at) const {
  const Value& value = body().value(id);
  if (value.constant) return literal_of(*value.constant);
  if (value.producer != no_node && body().node(value.producer).op == Op::extents)
    return number_of_run(body().node(value.producer));
  if (static_cast<int>(at.size()) != value.type.rank()) {
    throw InternalError("value '{}' of rank {} was read with {} coordinates", value.name, value.type.rank(),
                        at.size());
  }
  const std::vector<Expr> arguments = arguments_of(value.type, at);
  const auto func = funcs_.find(id);
  if (func != funcs_.end()) return func->second(arguments);
  const auto input = input_index_.find(id);
  if (input == input_index_.end())
    throw InternalError("value '{}' was read before it was defined", value.name);
  const Packing& packing = packings_[input->second];
  if (!is_layout(packing, value.type) &&
      Shape(packing.packed_dims(value.type.dims())) != value.type.storage_shape())
    throw InternalError("input '{}' is packed; its form must read it by packed coordinates", value.name);
  const Expr element = algorithm_.inputs[input->second](arguments);
  return value.type.dtype == DType::bf16 ? element : from_storage(element, value.type.dtype);
}

Coordinates AlgorithmBuilder::broadcast_coordinates(ValueId id, const Coordinates& at) const {
  const Shape& shape = type(id).shape;
  Coordinates own;
  for (std::size_t i = 0; i < shape.size(); ++i)
    own.push_back(shape[i] == 1 ? Coordinate(0) : at.at(at.size() - shape.size() + i));
  return own;
}

Expr AlgorithmBuilder::read_broadcast(ValueId id, const Coordinates& at) const {
  return read(id, broadcast_coordinates(id, at));
}

Func AlgorithmBuilder::stage(const std::string& stage_name) {
  Func func(stage_name);
  algorithm_.stages[stage_name] = func;
  return func;
}

void AlgorithmBuilder::define(ValueId id, const std::function<Expr(const Coordinates&)>& element) {
  const TensorType& own = type(id);
  Func func = stage(name(id));
  const Expr value = element(coordinates_of(own));
  func(vars_of(own)) = value.type().is_bfloat() ? value : Halide::cast(compute_type_of(own.dtype), value);
  funcs_[id] = func;
}

void AlgorithmBuilder::set(ValueId id, const Func& func) {
  funcs_[id] = func;
}

void AlgorithmBuilder::define_before(NodeId node) {
  for (NodeId id = 0; id < node; ++id) {
    const std::vector<ValueId>& results = body().node(id).outputs;
    const bool done =
        std::all_of(results.begin(), results.end(), [&](ValueId result) { return is_defined(result); });
    if (!done) define_node(body().node(id));
  }
}

void AlgorithmBuilder::define_rest() {
  define_before(static_cast<NodeId>(body().nodes().size()));
}

std::string output_stage(const Kernel& kernel, ValueId id) {
  const Value& value = kernel.body.value(id);
  if (value.producer == no_node) return value.name + "_out";
  // What is written in place is converted element by element.
  const bool converts =
      is_converted_to_store(value.type.dtype) && !writes_in_place(kernel.body.node(value.producer).op);
  return converts ? value.name + "_out" : value.name;
}

Expr AlgorithmBuilder::stored_element(ValueId output) const {
  const TensorType& own = type(output);
  const Expr element = read_stored(output, coordinates_of(own));
  return is_converted_to_store(own.dtype) ? to_storage(element, own.dtype) : element;
}

Algorithm AlgorithmBuilder::finish_together() {
  const std::vector<ValueId>& ids = body().outputs;
  std::vector<Expr> elements;
  for (const ValueId id : ids) elements.push_back(stored_element(id));
  Func results = stage(std::string(together_stage));
  results(vars_of(type(ids.front()))) = Halide::Tuple(elements);
  std::vector<Halide::OutputImageParam> buffers = results.output_buffers();
  for (std::size_t i = 0; i < ids.size(); ++i)
    fix_shape(buffers[i], type(ids[i]).storage_shape(), has_outer_blocks(type(ids[i])), i == 0);
  algorithm_.outputs.push_back(results);
  return std::move(algorithm_);
}

Algorithm AlgorithmBuilder::finish() {
  for (const ValueId id : body().outputs) {
    const std::string stage_name = output_stage(kernel_, id);
    if (stage_name != name(id)) {
      Func out = stage(stage_name);
      out(vars_of(type(id))) = stored_element(id);
    }
    Func out = algorithm_.stages.at(stage_name);
    Halide::OutputImageParam buffer = out.output_buffer();
    fix_shape(buffer, type(id).storage_shape(), has_outer_blocks(type(id)));
    algorithm_.outputs.push_back(out);
  }
  return std::move(algorithm_);
}

}  // namespace sylvite
