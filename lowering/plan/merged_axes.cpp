#include "lowering/plan/merged_axes.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/plan/storage_order.h"

namespace sylvite {
namespace {

/// The axes of which one may go on in the next, in the order of memory. Blocks of channels are by themselves.
std::vector<std::size_t> lined_axes(const TensorType& type) {
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < type.shape.size(); ++axis)
    if (axis != 1 || type.layout.channel_block == 0) axes.push_back(axis);
  return axes;
}

/// For each value of a body: may its axis i and the one behind it be one? Starts from all that may, and takes away what an
/// operation does not treat alike, until nothing changes.
class AxisLinks {
 public:
  explicit AxisLinks(const Kernel& kernel) : body_(kernel.body) {
    for (ValueId id = 0; id < static_cast<ValueId>(body_.values().size()); ++id) add_value(id);
    for (std::size_t i = 0; i < body_.inputs.size(); ++i)
      if (kernel.input_is_weight[i]) cut_all(body_.inputs[i]);
    do {
      is_changed_ = false;
      for (const Node& node : body_.nodes()) visit(node);
    } while (is_changed_);
  }

  [[nodiscard]] Dims merged(ValueId id) const {
    Dims dims = dims_[id_of(id)];
    const std::vector<std::size_t> axes = lined_axes(body_.type(id));
    for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
      if (!links_[id_of(id)][axes[i]]) continue;
      dims[axes[i + 1]] *= dims[axes[i]];
      dims[axes[i]] = 1;
    }
    return dims;
  }

  [[nodiscard]] bool is_any_merged() const {
    for (ValueId id = 0; id < static_cast<ValueId>(dims_.size()); ++id)
      if (merged(id) != dims_[id_of(id)]) return true;
    return false;
  }

 private:
  static std::size_t id_of(ValueId id) { return static_cast<std::size_t>(id); }

  void add_value(ValueId id) {
    const Value& value = body_.value(id);
    dims_.push_back(value.type.dims());
    const std::size_t rank = dims_.back().size();
    links_.emplace_back(rank < 2 ? 0 : rank - 1, true);
    const bool has_blocks = value.type.layout.channel_block != 0;
    if (value.constant || (has_blocks && !has_lined_images(value.type))) cut_all(id);
    if (has_blocks) cut(id, 1);
  }
  /// The axis behind this one in memory; the rank where none is.
  [[nodiscard]] std::size_t behind(ValueId id, std::size_t axis) const {
    const bool skips = axis == 0 && body_.type(id).layout.channel_block != 0;
    return axis + (skips ? 2 : 1);
  }
  /// What lies in another order has other neighbours.
  void cut_channels_unless_alike(ValueId a, ValueId b) {
    if (body_.type(a).layout == body_.type(b).layout) return;
    cut_channels(a);
    cut_channels(b);
  }
  void cut_channels(ValueId id) {
    cut(id, 0);
    cut(id, 1);
  }

  void cut(ValueId id, std::size_t axis) {
    std::vector<bool>& links = links_[id_of(id)];
    if (axis >= links.size() || !links[axis]) return;
    links[axis] = false;
    is_changed_ = true;
  }
  void cut_all(ValueId id) {
    for (std::size_t i = 0; i < links_[id_of(id)].size(); ++i) cut(id, i);
  }
  /// Either both are linked or neither.
  void tie(ValueId a, std::size_t axis_of_a, ValueId b, std::size_t axis_of_b) {
    if (!links_[id_of(a)][axis_of_a]) cut(b, axis_of_b);
    if (!links_[id_of(b)][axis_of_b]) cut(a, axis_of_a);
  }

  void visit(const Node& node) {
    if (has_trait(node.op, OpTrait::pointwise)) {
      for (const ValueId input : node.inputs) broadcast(input, node.outputs[0]);
    } else if (node.op == Op::to_layout) {
      broadcast(node.inputs[0], node.outputs[0]);
    } else if (node.op == Op::transpose) {
      transpose(node);
    } else if (node.op == Op::concat) {
      const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
      for (const ValueId input : node.inputs)
        keep_axes(input, node.outputs[0], [axis](std::size_t each) { return each == axis; });
    } else if (node.op == Op::slice) {
      const Dims &from = dims_[id_of(node.inputs[0])], &to = dims_[id_of(node.outputs[0])];
      keep_axes(node.inputs[0], node.outputs[0],
                [&](std::size_t each) { return is_cut(node, each, from, to); });
    } else if (node.op == Op::reshape) {
      reshape(node);
    } else if (has_trait(node.op, OpTrait::normalization)) {
      normalize(node);
    } else if (node.op == Op::reduce_sum || node.op == Op::reduce_max || node.op == Op::reduce_min) {
      reduce(node);
    } else if (node.op == Op::conv && has_one_tap(node)) {
      convolve(node);
    } else {
      for (const ValueId input : node.inputs)
        if (input != no_value) cut_all(input);
      for (const ValueId output : node.outputs) cut_all(output);
    }
  }

  /// Axes that become one are all read as they are, or all have one element for what the output has there; axes of one element in
  /// both may be either.
  void broadcast(ValueId input, ValueId output) {
    if (input == no_value) return;
    enum class Use { any, whole, repeated };
    const Dims& to = dims_[id_of(output)];
    const Dims& from = dims_[id_of(input)];
    if (body_.type(input).element_count() == 1) return;
    const std::size_t missing = to.size() - from.size();
    const bool has_blocks = body_.type(output).layout.channel_block != 0;
    const bool is_alike = missing == 0 ? body_.type(input).layout == body_.type(output).layout : !has_blocks;
    if (!is_alike) cut_channels(input);
    if (!is_alike && !has_blocks) cut_channels(output);
    Use before = Use::any;  // of the last axis that has a use
    const std::vector<std::size_t> axes = lined_axes(body_.type(output));
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::size_t axis = axes[i];
      const std::int64_t extent = axis < missing ? 1 : from[axis - missing];
      const Use use = to[axis] == 1 ? Use::any : extent == 1 ? Use::repeated : Use::whole;
      const bool is_change = use != Use::any && before != Use::any && use != before;
      if (use != Use::any) before = use;
      if (i == 0) continue;
      const std::size_t ahead = axes[i - 1];
      if (is_change || (!is_alike && ahead == 0 && before == Use::whole)) {
        cut(output, ahead);
        if (ahead >= missing) cut(input, ahead - missing);
      } else if (before != Use::repeated && ahead >= missing) {
        tie(input, ahead - missing, output, ahead);
      }
    }
  }

  /// All axes stay where they are, and some of them count.
  void keep_axes(ValueId input, ValueId output, const std::function<bool(std::size_t)>& counts) {
    cut_channels_unless_alike(input, output);
    for (std::size_t axis = 0; axis + 1 < dims_[id_of(input)].size(); ++axis) {
      const std::size_t next = behind(input, axis);
      if (counts(axis) || (next < dims_[id_of(input)].size() && counts(next))) {
        cut(input, axis);
        cut(output, axis);
      } else {
        tie(input, axis, output, axis);
      }
    }
  }

  static bool is_cut(const Node& slice, std::size_t axis, const Dims& from, const Dims& to) {
    return from[axis] != to[axis] || slice.attributes.integers("steps")[axis] != 1;
  }

  /// Neighbours that are the same axes on both sides may be one.
  void reshape(const Node& node) {
    const ValueId input = node.inputs[0], output = node.outputs[0];
    const Dims &from = dims_[id_of(input)], &to = dims_[id_of(output)];
    std::vector<bool> stays_from(from.size(), false), stays_to(to.size(), false);  // beside what follows it
    if (product(from, 0, from.size()) > 0) {
      std::optional<DimGroup> before;  // of one axis on both sides
      for (const DimGroup& group : dim_groups(from, to)) {
        const bool is_one = group.from_end == group.from_begin + 1 && group.to_end == group.to_begin + 1;
        if (is_one && before) {
          tie(input, before->from_begin, output, before->to_begin);
          stays_from[before->from_begin] = stays_to[before->to_begin] = true;
        }
        before = is_one ? std::optional(group) : std::nullopt;
      }
    }
    for (std::size_t axis = 0; axis + 1 < from.size(); ++axis)
      if (!stays_from[axis]) cut(input, axis);
    for (std::size_t axis = 0; axis + 1 < to.size(); ++axis)
      if (!stays_to[axis]) cut(output, axis);
  }

  void transpose(const Node& node) {
    const Dims& permutation = node.attributes.integers("perm");
    const ValueId input = node.inputs[0], output = node.outputs[0];
    if (body_.type(input).layout.channel_block != 0 || body_.type(output).layout.channel_block != 0) {
      cut_all(input);
      cut_all(output);
      return;
    }
    std::vector<bool> stays(permutation.size(), false);  // beside what follows it
    for (std::size_t i = 0; i + 1 < permutation.size(); ++i) {
      const auto from = static_cast<std::size_t>(permutation[i]);
      if (permutation[i + 1] == permutation[i] + 1) {
        tie(input, from, output, i);
        stays[from] = true;
      } else {
        cut(output, i);
      }
    }
    for (std::size_t axis = 0; axis + 1 < stays.size(); ++axis)
      if (!stays[axis]) cut(input, axis);
  }

  /// Rows may be one axis; what is normalised stays.
  void normalize(const Node& node) {
    const ValueId input = node.inputs[0], output = node.outputs[0];
    if (!node.attributes.has("axis")) {
      cut_all(input);
      cut_all(output);
      return;
    }
    const auto begin = static_cast<std::size_t>(node.attributes.integer("axis"));
    cut_channels_unless_alike(input, output);
    for (std::size_t axis = 0; axis + 1 < dims_[id_of(input)].size(); ++axis) {
      if (behind(input, axis) >= begin) cut(input, axis);
      tie(input, axis, output, axis);
    }
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
      if (node.inputs[i] != no_value) cut_all(node.inputs[i]);
  }

  void reduce(const Node& node) {
    const Dims& axes = node.attributes.integers("axes");
    const auto is_reduced = [&](std::size_t axis) {
      return std::ranges::find(axes, static_cast<std::int64_t>(axis)) != axes.end();
    };
    const bool keeps = node.attributes.integer("keepdims") != 0;
    const auto axis_of_output = [&](std::size_t axis) {
      const auto is_before = [&](std::int64_t each) { return each < static_cast<std::int64_t>(axis); };
      return axis - static_cast<std::size_t>(keeps ? 0 : std::ranges::count_if(axes, is_before));
    };
    const ValueId input = node.inputs[0], output = node.outputs[0];
    cut_channels_unless_alike(input, output);
    for (std::size_t axis = 0; axis + 1 < dims_[id_of(input)].size(); ++axis) {
      const std::size_t at = axis_of_output(axis);
      if (is_reduced(axis) != is_reduced(behind(input, axis))) {
        cut(input, axis);
        if (keeps || !is_reduced(axis))
          cut(output, at);
        else if (at > 0)
          cut(output, at - 1);  // the axis ahead of the folded ones has another neighbour now
      } else if (!is_reduced(axis)) {
        tie(input, axis, output, at);
      }
    }
  }

  [[nodiscard]] bool has_one_tap(const Node& conv) const {
    const auto are_all = [&](const char* name, std::int64_t value) {
      return std::ranges::all_of(conv.attributes.integers(name),
                                 [value](std::int64_t each) { return each == value; });
    };
    const Dims& window = dims_[id_of(conv.inputs[1])];
    return std::all_of(window.begin() + 2, window.end(), [](std::int64_t taps) { return taps == 1; }) &&
           are_all("strides", 1) && are_all("pads", 0);
  }

  void convolve(const Node& conv) {
    const ValueId input = conv.inputs[0], output = conv.outputs[0];
    for (const ValueId image : {input, output}) {
      cut(image, 1);
      if (body_.type(image).layout.channel_block == 0) cut(image, 0);
    }
    for (std::size_t axis = 0; axis + 1 < dims_[id_of(input)].size(); ++axis) tie(input, axis, output, axis);
    for (std::size_t i = 1; i < conv.inputs.size(); ++i)
      if (conv.inputs[i] != no_value) cut_all(conv.inputs[i]);
  }

  const Graph& body_;
  std::vector<Dims> dims_;                ///< by value
  std::vector<std::vector<bool>> links_;  ///< by value, of each axis with the next
  bool is_changed_ = false;
};

}  // namespace

bool is_merged_of(const TensorType& merged, const TensorType& type) {
  if (merged.dtype != type.dtype || merged.layout != type.layout || merged.rank() != type.rank() ||
      !merged.is_known() || !type.is_known())
    return false;
  if (merged == type) return true;
  const Dims to = merged.dims(), from = type.dims();
  const bool has_blocks = type.layout.channel_block != 0;
  if (has_blocks && (!has_lined_images(type) || to[1] != from[1])) return false;
  std::int64_t count = 1;  // of axes that go into the next one
  for (const std::size_t axis : lined_axes(type)) {
    count *= from[axis];
    if (to[axis] == count)
      count = 1;
    else if (to[axis] != 1 || axis + 1 == to.size())
      return false;
  }
  return true;
}

Kernel with_merged_axes(const Kernel& kernel) {
  const AxisLinks links(kernel);
  if (!links.is_any_merged()) return kernel;
  Graph merged;  // the same values in the same order, so that their numbers hold
  merged.name = kernel.body.name;
  const auto merged_value = [&](ValueId id) {
    Value value = kernel.body.value(id);
    value.type.shape = links.merged(id);
    return value;
  };
  for (ValueId id = 0; id < static_cast<ValueId>(kernel.body.values().size()); ++id) {
    Value value = merged_value(id);
    if (value.producer == no_node) {
      if (value.constant)
        merged.value(merged.add_constant(*value.constant, value.name)).type = value.type;
      else
        merged.add_input(value.name, value.type);
      continue;
    }
    Node node = kernel.body.node(value.producer);
    if (node.outputs[0] != id) continue;  // added with its first result
    if (node.op == Op::reshape) node.attributes.set("shape", value.type.dims());
    if (node.op == Op::slice) node.attributes.set("sizes", value.type.dims());
    std::vector<Value> results;
    results.reserve(node.outputs.size());
    for (const ValueId output : node.outputs) results.push_back(merged_value(output));
    merged.add_known_node(std::move(node), std::move(results));
  }
  merged.inputs = kernel.body.inputs;
  merged.outputs = kernel.body.outputs;
  return make_kernel(merged, kernel.input_is_weight);
}

}  // namespace sylvite
