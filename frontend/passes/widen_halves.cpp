// For machines that compute in f32 whatever is stored: f16 is read and written at the edges only.
//
// Before: y = conv(x, w); z = relu(y)                                  all of f16
// After:  y = conv(cast(x), w of f32); z = relu(y); cast(z) to f16
//
// What only moves elements stays as narrow as it is given, so that caches are not converted; so do casts to f16 that the
// model asks for, which round. Elements that become integers are rounded at each step ahead of that, as the model rounds them:
// places in tables of relative positions are logarithms of distances, which a step less of rounding moves to the place beside.

#include <algorithm>

#include "frontend/graph/copy.h"
#include "frontend/graph/made_weights.h"
#include "frontend/ops/op_table.h"
#include "frontend/passes/pass_list.h"
#include "frontend/values/storage.h"

namespace sylvite {
namespace {

Tensor widened(const Tensor& constant) {
  return made_of("widened", {constant}, [&] {
    return Tensor::later(DType::f32, constant.dims(), [constant] {
      Tensor wide(DType::f32, constant.dims());
      with_storage(constant.dtype(), [&](auto zero) {
        using Stored = decltype(zero);
        const auto from = constant.view<Stored>();
        const auto to = wide.mutable_view<float>();
        std::ranges::transform(from, to.begin(), [](Stored x) { return convert_element<float>(x); });
      });
      return wide;
    });
  });
}

class Widener {
 public:
  Widener(const Graph& source, DType half)
      : source_(source),
        half_(half),
        stored_(source),
        wide_(source.values().size(), no_value),
        rounds_(ahead_of_integers()) {
    stored_.add_inputs();
  }

  Graph convert() {
    for (const Node& node : source_.nodes()) add(node);
    std::vector<ValueId> outputs;
    outputs.reserve(source_.outputs.size());
    for (const ValueId id : source_.outputs) outputs.push_back(stored(id));
    return stored_.finish(std::move(outputs));
  }

 private:
  [[nodiscard]] bool is_half(ValueId id) const { return id != no_value && source_.type(id).dtype == half_; }

  /// Per value: a half, of which the next operations on elements make whole numbers.
  [[nodiscard]] IdMap<bool> ahead_of_integers() const {
    IdMap<bool> result(source_.values().size(), false);
    const std::vector<Node>& nodes = source_.nodes();
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      const bool is_whole = node->op == Op::floor || node->op == Op::ceil || node->op == Op::round ||
                            (node->op == Op::cast && !is_float(source_.type(node->outputs[0]).dtype));
      const bool is_between = result[node->outputs[0]] && (has_trait(node->op, OpTrait::pointwise) ||
                                                           has_trait(node->op, OpTrait::movement));
      if (!is_whole && !is_between) continue;
      for (const ValueId id : node->inputs)
        if (is_half(id)) result[id] = true;
    }
    return result;
  }

  ValueId cast(ValueId id, DType to) {
    return result_.add(Op::cast, {id}, {{"to", std::string(dtype_name(to))}});
  }

  /// As the source has it.
  ValueId stored(ValueId id) {
    if (is_half(id) && !stored_.is_mapped(id) && wide_[id] != no_value)
      stored_.set(id, cast(wide_[id], half_));
    return stored_.mapped(id);
  }

  /// In f32, if the source has it as a half.
  ValueId wide(ValueId id) {
    if (!is_half(id)) return stored(id);
    if (wide_[id] != no_value) return wide_[id];
    const Value& value = source_.value(id);
    return wide_[id] = value.constant ? result_.add_constant(widened(*value.constant), value.name)
                                      : cast(stored_.mapped(id), DType::f32);
  }

  void set_wide(ValueId old, ValueId made) {
    wide_[old] = rounds_[old] ? cast(cast(made, half_), DType::f32) : made;
  }

  /// A cast from f32 that need not round.
  [[nodiscard]] bool is_loose(const Node& node) const {
    return node.op == Op::cast && node.attributes.integer("rounds") == 0 && is_half(node.outputs[0]);
  }

  [[nodiscard]] bool stays(const Node& node) const {
    if (is_loose(node)) return false;
    const bool has_half = std::ranges::any_of(node.inputs, [&](ValueId id) { return is_half(id); });
    if (!has_half || node.op == Op::loop || node.op == Op::bitcast) return true;
    if (node.op == Op::cast) return node.attributes.string("to") != dtype_name(DType::f32);
    const bool moves = has_trait(node.op, OpTrait::movement) || has_trait(node.op, OpTrait::gather) ||
                       has_trait(node.op, OpTrait::scatter);
    return moves && std::ranges::any_of(node.inputs, [&](ValueId id) {
             return is_half(id) && wide_[id] == no_value && !source_.is_constant(id);
           });
  }

  void add(const Node& node) {
    if (stays(node)) {
      for (const ValueId id : node.inputs)
        if (is_half(id)) (void)stored(id);
      return stored_.copy(node);
    }
    if (is_loose(node)) return set_wide(node.outputs[0], stored(node.inputs[0]));
    if (node.op == Op::cast) return stored_.set(node.outputs[0], wide(node.inputs[0]));
    std::vector<ValueId> inputs;
    inputs.reserve(node.inputs.size());
    for (const ValueId id : node.inputs) inputs.push_back(wide(id));
    const std::vector<ValueId> outputs = result_.add_node(node.op, inputs, node.attributes, node.name);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const ValueId old = node.outputs[i];
      result_.rename(outputs[i], source_.value(old).name);
      if (is_half(old) && result_.type(outputs[i]).dtype == DType::f32)
        set_wide(old, outputs[i]);
      else
        stored_.set(old, outputs[i]);
    }
  }

  const Graph& source_;
  DType half_;
  GraphCopier stored_;  ///< values as the source has them
  Graph& result_ = stored_.graph();
  IdMap<ValueId> wide_;  ///< per value: in f32, or no_value
  IdMap<bool> rounds_;   ///< see ahead_of_integers
};

}  // namespace

Graph widen_halves(const Graph& graph, DType half) {
  return Widener(graph, half).convert();
}

}  // namespace sylvite
