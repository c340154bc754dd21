#include "frontend/graph/graph_builder.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "frontend/graph/evaluation_work.h"
#include "frontend/graph/folded_tables.h"
#include "frontend/graph/interpreter.h"
#include "frontend/ops/infer.h"
#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

constexpr std::int64_t max_value_bytes = std::int64_t{1} << 38;
constexpr std::int64_t max_graph_nodes = 30'000;
constexpr std::int64_t max_step_nodes = 500'000;  // of all host steps of a run
constexpr std::int64_t work_per_node = 8192;      // beside what its elements take
constexpr std::int64_t max_folded_bytes = std::int64_t{16} << 20;
constexpr std::int64_t max_step_bytes = std::int64_t{1} << 30;  // of what one operation of a host step makes

std::int64_t folding_work(const Graph& graph, const Node& node) {
  return evaluation_work(graph, node) + work_per_node;
}

std::int64_t bytes_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::int64_t bytes = 0;
  for (ValueId id : ids) bytes += id == no_value ? 0 : graph.type(id).byte_size();
  return bytes;
}

/// Do the bytes and steps that are left of a budget suffice? What work on large weights has used up is still there for
/// small nodes, as shapes are computed by.
bool is_affordable(const Graph& graph, const Node& node, std::int64_t bytes_left, std::int64_t work_left) {
  constexpr std::int64_t small_bytes = 4096;
  constexpr std::int64_t small_nodes = 30'000;
  const std::int64_t bytes = bytes_of(graph, node.outputs);
  const std::int64_t work = folding_work(graph, node);
  if (bytes <= small_bytes && work <= 2 * work_per_node) {
    bytes_left += small_nodes * small_bytes;
    work_left += small_nodes * 2 * work_per_node;
  }
  return bytes <= bytes_left && work <= work_left;
}

/// 8-bit integers of weights, of which passes make products, would only get larger.
bool widens_weights(const Graph& graph, const Node& node) {
  constexpr std::int64_t least_elements = 16;  // fewer are zero points, or counts
  if (node.op != Op::cast) return false;
  const TensorType& from = graph.type(node.inputs[0]);
  return (from.dtype == DType::i8 || from.dtype == DType::u8) && from.element_count() >= least_elements;
}

}  // namespace

void check_node_count(std::int64_t count, std::int64_t most) {
  if (count > most) {
    throw UnsupportedError(
        "the model needs more than {} operations once its functions are inlined and its loops unrolled; "
        "split it",
        most);
  }
}

void check_value_size(const TensorType& type) {
  for (const std::int64_t extent : type.dims())  // a value without elements may have any
    if (extent > extent_limit)
      throw UnsupportedError("a value of type {} has an extent above {}", type.to_string(), extent_limit);
  if (type.byte_size() > max_value_bytes) {
    throw UnsupportedError("a value of type {} takes {} bytes; at most {} are served", type.to_string(),
                           type.byte_size(), max_value_bytes);
  }
}

int normalize_axis(std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) throw ModelError("axis {} is out of range for rank {}", axis, rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<std::int64_t> normalize_axes(const std::vector<std::int64_t>& axes, int rank) {
  std::vector<std::int64_t> result(axes);
  for (std::int64_t& axis : result) axis = normalize_axis(axis, rank);
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end())
    throw ModelError("an axis is given twice");
  return result;
}

std::vector<std::int64_t> all_axes(int rank) {
  std::vector<std::int64_t> axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

void GraphBuilder::reserve_table(const Dims& dims) {
  const std::int64_t elements = checked_product(dims, "table");
  if (elements > table_elements_left_) {
    throw UnsupportedError(
        "a table of {} elements is too large to be computed while importing: {} are left for this model",
        elements, table_elements_left_);
  }
  table_elements_left_ -= elements;
}

bool GraphBuilder::may_fold(const Node& node) const {
  if (keeps_nodes_) return false;
  for (ValueId id : node.inputs)
    if (id != no_value && !graph_->is_constant(id)) return false;
  if (!is_limited_) return true;
  if (widens_weights(*graph_, node)) return false;
  const std::int64_t output_bytes = bytes_of(*graph_, node.outputs);
  return output_bytes <= std::max(max_folded_bytes, bytes_of(*graph_, node.inputs)) &&
         is_affordable(*graph_, node, fold_bytes_left_, work_left_);
}

bool GraphBuilder::may_copy(std::int64_t bytes) {
  if (!is_limited_) return true;
  if (bytes > fold_bytes_left_) return false;
  fold_bytes_left_ -= bytes;
  return true;
}

void GraphBuilder::charge(std::int64_t bytes, std::int64_t work) {
  if (bytes > std::min(max_step_bytes, fold_bytes_left_) || work > work_left_)
    throw UnsupportedError("{} bytes in {} steps are more than may be computed for this model", bytes, work);
  fold_bytes_left_ -= bytes;
  work_left_ -= work;
}

void GraphBuilder::check_step(const Node& node) const {
  const std::int64_t bytes = bytes_of(*graph_, node.outputs);
  if (bytes > std::max(max_step_bytes, bytes_of(*graph_, node.inputs))) {
    throw UnsupportedError("{} would make {} bytes in a host step, which may make {} at a time",
                           op_info(node.op).name, bytes, max_step_bytes);
  }
  if (bytes > fold_bytes_left_ || folding_work(*graph_, node) > work_left_) {
    throw UnsupportedError("{} would make {} bytes, more than is left for the host steps of this run",
                           op_info(node.op).name, bytes);
  }
}

std::vector<Tensor> GraphBuilder::evaluate(const Node& node, const std::vector<const Tensor*>& inputs) {
  std::vector<TensorType> types;
  types.reserve(node.outputs.size());
  for (ValueId id : node.outputs) types.push_back(graph_->type(id));
  work_left_ -= folding_work(*graph_, node);
  std::vector<Tensor> results = evaluation_(node.op, inputs, node.attributes, types);
  for (const Tensor& result : results) fold_bytes_left_ -= result.byte_size();
  return results;
}

std::vector<Sym> GraphBuilder::fold(const Node& node) {
  if (!is_limited_) check_step(node);
  std::vector<const Tensor*> inputs;
  inputs.reserve(node.inputs.size());
  for (ValueId id : node.inputs) inputs.push_back(id == no_value ? nullptr : &*graph_->value(id).constant);
  std::vector<Sym> outputs;
  std::vector<Tensor> results = evaluate(node, inputs);
  if (is_limited_)  // an import, whose constants may be others at other sizes
    if (std::vector<TableReading> readings = fold_readings(*graph_, node); !readings.empty())
      results[0] = as_size_table(results[0], std::move(readings));
  for (std::size_t i = 0; i < results.size(); ++i) {
    ValueId id = node.outputs[i];
    if (is_limited_)
      id = graph_->add_constant(results[i]);
    else  // in a host step nobody looks at nodes: the value is a constant from now on
      graph_->value(id).constant = std::move(results[i]);
    outputs.emplace_back(*this, id);
  }
  return outputs;
}

const Tensor* GraphBuilder::find_known(ValueId id) {
  const Value& value = graph_->value(id);
  if (value.constant) return &*value.constant;
  if (!keeps_nodes_ || value.producer == no_node) return nullptr;
  if (const auto found = known_.find(id); found != known_.end())
    return found->second ? &*found->second : nullptr;
  const Node node = graph_->node(value.producer);
  for (ValueId output : node.outputs) known_[output] = std::nullopt;
  std::vector<const Tensor*> inputs;
  for (ValueId input : node.inputs) {
    inputs.push_back(input == no_value ? nullptr : find_known(input));
    if (input != no_value && inputs.back() == nullptr) return nullptr;
  }
  if (bytes_of(*graph_, node.outputs) > max_folded_bytes ||
      !is_affordable(*graph_, node, fold_bytes_left_, work_left_) || op_info(node.op).evaluate == nullptr)
    return nullptr;
  const std::vector<Tensor> results = evaluate(node, inputs);
  for (std::size_t i = 0; i < results.size(); ++i) known_[node.outputs[i]] = results[i];
  return &*known_[id];
}

std::optional<Tensor> GraphBuilder::known(Sym value) {
  const Tensor* found = find_known(value.id());
  return found == nullptr ? std::nullopt : std::optional<Tensor>(*found);
}

std::vector<Sym> GraphBuilder::add_all(Op op, const std::vector<Sym>& inputs, Attributes attributes) {
  check_node_count(static_cast<std::int64_t>(graph_->nodes().size()) + 1,
                   is_limited_ ? max_graph_nodes : max_step_nodes);
  std::vector<ValueId> ids;
  for (const Sym& input : inputs) {
    if (input && &input.builder() != this)
      throw UsageError("{} of values of two graph builders", op_info(op).name);
    ids.push_back(input.id());
  }
  const std::vector<ValueId> results =
      graph_->add_node(op, std::move(ids), std::move(attributes), node_name_);
  std::vector<Sym> outputs;
  for (ValueId id : results) {
    check_value_size(graph_->type(id));
    outputs.emplace_back(*this, id);
  }
  const Node& node = graph_->nodes().back();  // folding adds constants only
  return may_fold(node) ? fold(node) : outputs;
}

Sym GraphBuilder::add(Op op, const std::vector<Sym>& inputs, Attributes attributes) {
  return add_all(op, inputs, std::move(attributes)).at(0);
}

Sym GraphBuilder::input(const std::string& name, DType dtype, const Dims& dims) {
  return {*this, graph_->add_input(name, make_type(dtype, dims))};
}

void GraphBuilder::output(Sym value, const std::string& name) {
  graph_->rename(value.id(), name);
  graph_->outputs.push_back(value.id());
}

Sym GraphBuilder::constant(const Tensor& tensor, const std::string& name) {
  return {*this, graph_->add_constant(tensor, name)};
}

Sym GraphBuilder::scalar(DType dtype, double value) {
  const auto key = std::make_pair(dtype, value);
  const bool cacheable = value == value && value != 0;  // NaN does not order, and -0 equals 0
  if (const auto found = scalars_.find(key); cacheable && found != scalars_.end())
    return {*this, found->second};
  Tensor tensor(dtype, {});
  tensor.set_double(0, value);
  const Sym result = constant(tensor);
  if (cacheable) scalars_[key] = result.id();
  return result;
}

Sym GraphBuilder::reals(DType dtype, const Dims& dims, const std::vector<double>& values) {
  Tensor tensor(dtype, dims);
  if (static_cast<std::size_t>(tensor.size()) != values.size())
    throw InternalError("reals: wrong number of values");
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set_double(static_cast<std::int64_t>(i), values[i]);
  return constant(tensor);
}

Sym GraphBuilder::filled(DType dtype, const Dims& dims, double value) {
  return sylvite::broadcast_to(scalar(dtype, value), dims);
}

Sym GraphBuilder::iota(DType dtype, const Dims& dims, int axis) {
  return add(Op::iota, {},
             {{"shape", dims}, {"axis", std::int64_t{axis}}, {"dtype", std::string(dtype_name(dtype))}});
}

}  // namespace sylvite
