#include "frontend/graph/capacity_form.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/error.h"
#include "frontend/graph/copy.h"
#include "frontend/graph/graph_builder.h"
#include "frontend/ops/op_table.h"
#include "frontend/values/extents_at.h"

namespace sylvite {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool has_symbol(const Attributes& attributes) {
  return std::ranges::any_of(attributes.items(), [](const auto& item) {
    return std::holds_alternative<std::vector<Extent>>(item.second);
  });
}

Extent product(const Shape& shape, std::size_t from, std::size_t to) {
  Extent result = 1;
  for (std::size_t i = from; i < to; ++i) result *= shape[i];
  return result;
}

class CapacityForm {
 public:
  CapacityForm(const Graph& source, const std::vector<State>& states, const Growth& growth)
      : source_(source), states_(states), growth_(growth), builder_(graph_) {
    graph_.name = source.name;
    most_ = {{growth.length, growth.capacity - growth.added}};
  }

  Graph run() {
    add_inputs();
    for (const Node& node : source_.nodes()) add(node);
    add_outputs();
    return without_dead_nodes(graph_);
  }

 private:
  // What the source says.
  [[nodiscard]] const TensorType& type(ValueId id) const { return source_.type(id); }
  [[nodiscard]] bool grows(ValueId id) const { return id != no_value && !type(id).is_known(); }
  [[nodiscard]] bool grows(ValueId id, std::size_t axis) const { return !type(id).shape[axis].is_known(); }
  [[nodiscard]] Dims most(const Shape& shape) const { return extents_at(shape, most_); }
  [[noreturn]] static void refuse(const Node& node, const std::string& why) {
    throw UnsupportedError("{} '{}' {}", op_info(node.op).name, node.name, why);
  }

  // What the result has.
  void add_inputs();
  void add_outputs();
  [[nodiscard]] Sym mapped(ValueId id);
  [[nodiscard]] std::vector<Sym> mapped(const std::vector<ValueId>& ids);
  void set(const Node& node, Sym value);
  /// factor * length + offset, i64 of rank 0.
  [[nodiscard]] Sym number(const Node& node, const Extent& extent);
  /// True for the first `extent` elements along an axis of `rank`; its other axes are 1.
  [[nodiscard]] Sym is_inside(const Node& node, const Extent& extent, std::size_t axis, int rank);
  [[nodiscard]] Sym filled_behind(const Node& node, ValueId id, std::size_t axis, double value);
  /// offset + 0, 1, ...
  [[nodiscard]] Sym counted(const Node& node, const Extent& offset, std::int64_t count);

  void add(const Node& node);
  void add_known(const Node& node);
  void add_extents(const Node& node);
  void add_reshape(const Node& node);
  void add_slice(const Node& node);
  void add_concat(const Node& node);
  void add_reduction(const Node& node);
  void add_softmax(const Node& node);
  void add_matmul(const Node& node);
  void add_attention(const Node& node);
  void follow(const Node& node);
  void check_axis(const Node& node) const;

  const Graph& source_;
  const std::vector<State>& states_;
  const Growth& growth_;
  SymbolValues most_;
  Graph graph_;
  GraphBuilder builder_;
  Sym length_;
  std::map<ValueId, Sym> map_;
  std::map<ValueId, Sym> buffers_;  ///< of states that grow, at their capacity
  std::set<ValueId> zero_behind_;   ///< what does not count is 0
  std::set<ValueId> finite_behind_;
};

void CapacityForm::add_inputs() {
  for (std::size_t i = 0; i < source_.inputs.size(); ++i) {
    const ValueId id = source_.inputs[i];
    const Value& value = source_.value(id);
    const bool is_state = std::ranges::find(states_, i, &State::input) != states_.end();
    Dims dims = most(value.type.shape);
    if (!is_state || !grows(id)) {
      map_[id] = builder_.input(value.name, value.type.dtype, dims);
      continue;
    }
    for (std::size_t axis = 0; axis < dims.size(); ++axis)
      if (grows(id, axis)) dims[axis] = growth_.capacity;
    buffers_[id] = builder_.input(value.name, value.type.dtype, dims);
    finite_behind_.insert(id);
  }
  length_ = builder_.input(growth_.length, DType::i64, {});
}

void CapacityForm::add_outputs() {
  for (std::size_t i = 0; i < source_.outputs.size(); ++i) {
    const ValueId id = source_.outputs[i];
    const std::string& name = source_.output_name(i);
    const auto state = std::ranges::find(states_, i, &State::output);
    if (state == states_.end() && grows(id))
      throw UnsupportedError("output '{}' is {}: it grows with the states, and is none", name,
                             type(id).to_string());
    const Sym value = mapped(id);
    if (state != states_.end()) {
      const TensorType& past = graph_.type(graph_.inputs[state->input]);
      if (graph_.type(value.id()) != past)
        throw UnsupportedError("state '{}': its next value '{}' is {}, expected {} entries more than {}",
                               source_.value(source_.inputs[state->input]).name, name, type(id).to_string(),
                               growth_.added, growth_.length);
      graph_.states.push_back(*state);
    }
    graph_.outputs.push_back(value.id());
    graph_.output_names.push_back(name);
  }
  const Sym next = length_ + static_cast<double>(growth_.added);
  graph_.states.push_back({graph_.inputs.size() - 1, graph_.outputs.size()});
  graph_.outputs.push_back(next.id());
  graph_.output_names.push_back("next_" + growth_.length);
  std::ranges::sort(graph_.states, {}, &State::input);
}

Sym CapacityForm::mapped(ValueId id) {
  if (id == no_value) return {};
  if (const auto found = map_.find(id); found != map_.end()) return found->second;
  if (source_.is_constant(id))
    return map_[id] = builder_.constant(*source_.value(id).constant, source_.value(id).name);
  // The first entries of a state, where something else than a concat reads it.
  Sym value = buffers_.at(id);
  const Dims wanted = most(type(id).shape);
  for (std::size_t axis = 0; axis < wanted.size(); ++axis)
    value = slice(value, static_cast<int>(axis), 0, wanted[axis]);
  return map_[id] = value;
}

std::vector<Sym> CapacityForm::mapped(const std::vector<ValueId>& ids) {
  std::vector<Sym> result;
  result.reserve(ids.size());
  for (const ValueId id : ids) result.push_back(mapped(id));
  return result;
}

void CapacityForm::set(const Node& node, Sym value) {
  follow(node);
  map_[node.outputs[0]] = value;
  const bool is_new = graph_.value(value.id()).producer != no_node;
  if (is_new) graph_.rename(value.id(), source_.value(node.outputs[0]).name);
}

Sym CapacityForm::number(const Node& node, const Extent& extent) {
  const std::int64_t offset = extent.at({{growth_.length, 0}});
  const std::int64_t factor = extent.at({{growth_.length, 1}}) - offset;
  if (Extent(factor) * Extent::symbol(growth_.length) + Extent(offset) != extent)
    refuse(node, fmt::format("has the size {}, which is not linear", extent.to_string()));
  if (factor == 0) return builder_.constant(Tensor::scalar_i64(offset));
  const Sym scaled = factor == 1 ? length_ : length_ * static_cast<double>(factor);
  return offset == 0 ? scaled : scaled + static_cast<double>(offset);
}

Sym CapacityForm::counted(const Node& node, const Extent& offset, std::int64_t count) {
  const Sym start = number(node, offset);
  return count == 1 ? reshape(start, {1}) : builder_.iota(DType::i64, {count}, 0) + start;
}

Sym CapacityForm::is_inside(const Node& node, const Extent& extent, std::size_t axis, int rank) {
  const Sym place = builder_.iota(DType::i64, {extent.at(most_)}, 0);
  Dims dims(static_cast<std::size_t>(rank), 1);
  dims[axis] = extent.at(most_);
  return reshape(apply(Op::less, place, number(node, extent)), dims);
}

Sym CapacityForm::filled_behind(const Node& node, ValueId id, std::size_t axis, double value) {
  return where(is_inside(node, type(id).shape[axis], axis, type(id).rank()), mapped(id), value);
}

void CapacityForm::add(const Node& node) {
  const auto grown = [&](ValueId id) { return grows(id); };
  const bool is_touched = std::ranges::any_of(node.inputs, grown) ||
                          std::ranges::any_of(node.outputs, grown) || has_symbol(node.attributes);
  if (!is_touched) return add_known(node);
  if (has_trait(node.op, OpTrait::pointwise)) return add_known(node);
  switch (node.op) {
    case Op::extents:
      return add_extents(node);
    case Op::iota:
    case Op::broadcast_to:
    case Op::transpose:
    case Op::gather:  // indices that count are within the data that counts
      return add_known(node);
    case Op::reshape:
      return add_reshape(node);
    case Op::slice:
      return add_slice(node);
    case Op::concat:
      return add_concat(node);
    case Op::cumsum:
    case Op::layer_norm:
    case Op::rms_norm:
      check_axis(node);
      return add_known(node);
    case Op::reduce_sum:
    case Op::reduce_max:
    case Op::reduce_min:
    case Op::reduce_prod:
      return add_reduction(node);
    case Op::softmax:
    case Op::log_softmax:
      return add_softmax(node);
    case Op::matmul:
      return add_matmul(node);
    case Op::attention:
      return add_attention(node);
    default:
      refuse(node, fmt::format("takes part in sizes that grow with {}, which it cannot", growth_.length));
  }
}

/// The node at the greatest length.
void CapacityForm::add_known(const Node& node) {
  builder_.set_node_name(node.name);
  // These two know what to do with large constants.
  if (node.op == Op::transpose)
    return set(node, transpose(mapped(node.inputs[0]), node.attributes.integers("perm")));
  if (node.op == Op::reshape)
    return set(node, reshape(mapped(node.inputs[0]), node.attributes.integers("shape")));
  const std::vector<Sym> results = builder_.add_all(node.op, mapped(node.inputs), node.attributes.at(most_));
  for (std::size_t i = 0; i < results.size(); ++i) {
    map_[node.outputs[i]] = results[i];
    if (graph_.value(results[i].id()).producer != no_node)
      graph_.rename(results[i].id(), source_.value(node.outputs[i]).name);
  }
  follow(node);
}

/// Moves what is known of elements that do not count through operations that only move.
void CapacityForm::follow(const Node& node) {
  const bool moves = node.op == Op::cast || node.op == Op::reshape || node.op == Op::transpose ||
                     node.op == Op::broadcast_to || node.op == Op::slice;
  if (!moves || node.inputs.size() != 1) return;
  for (std::set<ValueId>* known : {&zero_behind_, &finite_behind_})
    if (known->contains(node.inputs[0])) known->insert(node.outputs[0]);
}

void CapacityForm::add_extents(const Node& node) {
  std::vector<Sym> numbers;
  for (const Extent& extent : node.attributes.extents("values"))
    numbers.push_back(reshape(number(node, extent), {1}));
  set(node, concat(numbers, 0));
}

/// Axes that grow must stay axes, with as much before them as there was.
void CapacityForm::add_reshape(const Node& node) {
  const Shape& from = type(node.inputs[0]).shape;
  const Shape& to = type(node.outputs[0]).shape;
  std::size_t at = 0;
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    if (from[axis].is_known()) continue;
    while (at < to.size() && to[at].is_known()) ++at;
    if (at == to.size() || to[at] != from[axis] || product(from, 0, axis) != product(to, 0, at))
      refuse(node, fmt::format("regroups {} as {}", from.to_string(), to.to_string()));
    ++at;
  }
  while (at < to.size() && to[at].is_known()) ++at;
  if (at < to.size()) refuse(node, fmt::format("regroups {} as {}", from.to_string(), to.to_string()));
  set(node, reshape(mapped(node.inputs[0]), most(to)));
}

void CapacityForm::add_slice(const Node& node) {
  const std::vector<Extent> starts = node.attributes.extents("starts");
  const std::vector<Extent> sizes = node.attributes.extents("sizes");
  const Dims& steps = node.attributes.integers("steps");
  Sym x = mapped(node.inputs[0]);
  for (std::size_t axis = 0; axis < starts.size(); ++axis) {
    const auto at = static_cast<int>(axis);
    const std::int64_t count = sizes[axis].at(most_);
    if (starts[axis].is_known() && steps[axis] > 0) {
      const std::int64_t start = starts[axis].known();
      x = slice(x, at, start, start + (count - 1) * steps[axis] + 1, steps[axis]);
      continue;
    }
    // Indices behind the last are clamped, where elements do not count.
    Sym places = builder_.iota(DType::i64, {count}, 0);
    if (steps[axis] != 1) places = places * static_cast<double>(steps[axis]);
    places = apply(Op::maximum, places + number(node, starts[axis]), 0.0);
    x = gather(x, places, at);
  }
  set(node, x);
}

/// Parts up to the first that grows are put side by side; those behind it go where it ends.
void CapacityForm::add_concat(const Node& node) {
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  const Shape& whole = type(node.outputs[0]).shape;
  if (whole[axis].is_known()) return add_known(node);
  std::size_t first = 0;
  while (!grows(node.inputs[first], axis)) ++first;
  const Dims dims = most(whole);
  const auto place = static_cast<int>(axis);
  std::vector<Sym> parts =
      mapped({node.inputs.begin(), node.inputs.begin() + static_cast<std::ptrdiff_t>(first)});
  Extent offset = 0;
  for (std::size_t i = 0; i <= first; ++i) offset += type(node.inputs[i]).shape[axis];
  const auto buffer = buffers_.find(node.inputs[first]);
  const bool is_state = buffer != buffers_.end();
  const bool fits = first == 0 && is_state && buffer->second.dims() == dims;
  parts.push_back(fits ? buffer->second : mapped(node.inputs[first]));
  Sym result = concat(parts, place);
  if (const std::int64_t missing = dims[axis] - result.dim(place); missing > 0) {
    Dims high(dims.size(), 0);
    high[axis] = missing;
    result = pad(result, Dims(dims.size(), 0), high);
  }
  for (std::size_t i = first + 1; i < node.inputs.size(); ++i) {
    const ValueId part = node.inputs[i];
    if (grows(part, axis)) refuse(node, "has two parts that grow");
    const std::int64_t count = type(part).shape[axis].known();
    if (count == 0) continue;
    Dims at(dims.size(), 1);
    at[axis] = count;
    const Sym rows = mapped(part);
    const Sym places = broadcast_to(reshape(counted(node, offset, count), at), rows.dims());
    result = builder_.add(Op::scatter_elements, {result, places, rows}, {{"axis", std::int64_t{place}}});
    offset += Extent(count);
  }
  set(node, result);
  if (is_state) finite_behind_.insert(node.outputs[0]);
}

/// For operations along an axis, and from it to the last.
void CapacityForm::check_axis(const Node& node) const {
  const std::int64_t rank = type(node.inputs[0]).rank();
  const std::int64_t axis = node.attributes.integer("axis");
  const bool is_scan = node.op == Op::cumsum;
  if (is_scan && node.attributes.integer("reverse") == 0) return;
  for (std::int64_t i = axis; i < (is_scan ? axis + 1 : rank); ++i)
    if (grows(node.inputs[0], static_cast<std::size_t>(i)))
      refuse(node, fmt::format("goes over what grows with {}", growth_.length));
}

void CapacityForm::add_reduction(const Node& node) {
  const ValueId id = node.inputs[0];
  Sym x = mapped(id);
  for (const std::int64_t axis : node.attributes.integers("axes")) {
    const auto at = static_cast<std::size_t>(axis);
    if (!grows(id, at)) continue;
    const bool is_extreme = node.op == Op::reduce_max || node.op == Op::reduce_min;
    if (is_extreme && !is_float(x.dtype())) refuse(node, "compares integers over what grows");
    const double neutral = node.op == Op::reduce_sum    ? 0
                           : node.op == Op::reduce_prod ? 1
                           : node.op == Op::reduce_max  ? -infinity
                                                        : infinity;
    x = where(is_inside(node, type(id).shape[at], at, type(id).rank()), x, neutral);
  }
  set(node, builder_.add(node.op, {x}, node.attributes));
}

void CapacityForm::add_softmax(const Node& node) {
  const ValueId id = node.inputs[0];
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  if (!grows(id, axis)) return add_known(node);
  set(node, builder_.add(node.op, {filled_behind(node, id, axis, -infinity)}, node.attributes));
  const auto is_known = [](const Extent& extent) { return extent.is_known(); };
  const bool grows_once = std::ranges::count_if(type(id).shape, is_known) == type(id).rank() - 1;
  if (node.op == Op::softmax && grows_once) zero_behind_.insert(node.outputs[0]);
}

void CapacityForm::add_matmul(const Node& node) {
  const auto [left, right] = std::pair(node.inputs[0], node.inputs[1]);
  const auto column = static_cast<std::size_t>(type(left).rank() - 1);
  const auto row = static_cast<std::size_t>(type(right).rank() - 2);
  if (!grows(left, column)) return add_known(node);
  const Sym a = zero_behind_.contains(left) ? mapped(left) : filled_behind(node, left, column, 0);
  const Sym b = finite_behind_.contains(right) ? mapped(right) : filled_behind(node, right, row, 0);
  set(node, matmul(a, b));
}

void CapacityForm::add_attention(const Node& node) {
  const ValueId keys = node.inputs[1];
  const auto axis = static_cast<std::size_t>(type(keys).rank() - 2);
  if (!grows(keys, axis)) return add_known(node);
  if (node.attributes.integer("causal") != 0) refuse(node, "hides keys by their place among those that grow");
  std::vector<Sym> inputs = mapped(node.inputs);
  const int rank = type(node.outputs[0]).rank();
  const Sym inside = is_inside(node, type(keys).shape[axis], static_cast<std::size_t>(rank - 1), rank);
  if (inputs.size() < 4 || !inputs[3]) {
    inputs.resize(4);
    inputs[3] = inside;
  } else if (inputs[3].dtype() == DType::boolean) {
    inputs[3] = apply(Op::logical_and, inputs[3], inside);
  } else {
    inputs[3] = where(inside, inputs[3], -infinity);
  }
  if (!finite_behind_.contains(node.inputs[2])) inputs[2] = filled_behind(node, node.inputs[2], axis, 0);
  builder_.set_node_name(node.name);
  set(node, builder_.add(Op::attention, inputs, node.attributes));
}

}  // namespace

Graph capacity_form(const Graph& graph, const std::vector<State>& states, const Growth& growth) {
  return CapacityForm(graph, states, growth).run();
}

}  // namespace sylvite
