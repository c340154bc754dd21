#include "lowering/plan/merged_axes.h"

#include <algorithm>
#include <vector>

#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

/// For each value of a body: may its axes i and i + 1 be one? Starts from all that may, and takes away what an operation does not
/// treat alike, until nothing changes.
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
    for (std::size_t i = 0; i + 1 < dims.size(); ++i) {
      if (!links_[id_of(id)][i]) continue;
      dims[i + 1] *= dims[i];
      dims[i] = 1;
    }
    return dims;
  }

 private:
  static std::size_t id_of(ValueId id) { return static_cast<std::size_t>(id); }

  void add_value(ValueId id) {
    const Value& value = body_.value(id);
    dims_.push_back(value.type.dims());
    const std::size_t rank = dims_.back().size();
    links_.emplace_back(rank < 2 ? 0 : rank - 1, true);
    if (value.constant) cut_all(id);
    if (value.type.layout.channel_block == 0) return;
    cut(id, 0);  // channels are in blocks
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
    const std::size_t missing = to.size() - from.size();
    Use before = Use::any;  // of the last axis that has a use
    for (std::size_t axis = 0; axis < to.size(); ++axis) {
      const std::int64_t extent = axis < missing ? 1 : from[axis - missing];
      const Use use = to[axis] == 1 ? Use::any : extent == 1 ? Use::repeated : Use::whole;
      const bool is_change = use != Use::any && before != Use::any && use != before;
      if (use != Use::any) before = use;
      if (axis == 0) continue;
      if (is_change) {
        cut(output, axis - 1);
        if (axis > missing) cut(input, axis - 1 - missing);
      } else if (before != Use::repeated && axis > missing) {
        tie(input, axis - 1 - missing, output, axis - 1);
      }
    }
  }

  void transpose(const Node& node) {
    const Dims& permutation = node.attributes.integers("perm");
    const ValueId input = node.inputs[0], output = node.outputs[0];
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
    for (std::size_t axis = 0; axis + 1 < dims_[id_of(input)].size(); ++axis) {
      if (axis + 1 >= begin) cut(input, axis);
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
    const ValueId input = node.inputs[0], output = node.outputs[0];
    for (std::size_t axis = 0; axis + 1 < dims_[id_of(input)].size(); ++axis) {
      if (is_reduced(axis) != is_reduced(axis + 1)) {
        cut(input, axis);
        cut(output, axis);
      } else if (!is_reduced(axis)) {
        tie(input, axis, output, axis);
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
      cut(image, 0);
      cut(image, 1);
    }
    for (std::size_t axis = 2; axis + 1 < dims_[id_of(input)].size(); ++axis) tie(input, axis, output, axis);
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
  const Dims to = merged.dims(), from = type.dims();
  std::int64_t count = 1;  // of axes that go into the next one
  for (std::size_t i = 0; i < to.size(); ++i) {
    count *= from[i];
    const bool is_next = to[i] == 1 && i + 1 < to.size();
    if (to[i] == count)
      count = 1;
    else if (!is_next || (type.layout.channel_block != 0 && i < 2))
      return false;
  }
  return true;
}

Kernel with_merged_axes(const Kernel& kernel) {
  const AxisLinks links(kernel);
  Graph merged = kernel.body;
  bool is_changed = false;
  for (ValueId id = 0; id < static_cast<ValueId>(merged.values().size()); ++id) {
    TensorType& type = merged.value(id).type;
    const Dims dims = links.merged(id);
    if (dims == type.dims()) continue;
    type = {type.dtype, Shape(dims), type.layout};
    is_changed = true;
  }
  return is_changed ? make_kernel(merged, kernel.input_is_weight) : kernel;
}

}  // namespace sylvite
