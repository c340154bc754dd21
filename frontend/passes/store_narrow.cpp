#include "frontend/passes/store_narrow.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/graph/copy.h"
#include "frontend/graph/made_weights.h"
#include "frontend/graph/views.h"
#include "frontend/ops/infer.h"
#include "frontend/ops/op_table.h"
#include "frontend/passes/round_constants.h"
#include "frontend/passes/wide_numbers.h"
#include "frontend/values/size_table.h"

namespace sylvite {
namespace {

ValueId cast(Graph& graph, ValueId id, DType to) {
  return graph.add(Op::cast, {id}, {{"to", std::string(dtype_name(to))}});
}

/// Per node, the last first, so that what is asked of its readers is known: `accept(node, known)`.
template <typename Accept>
IdMap<bool> from_the_last(const Graph& graph, Accept accept) {
  IdMap<bool> known(graph.nodes().size(), false);
  for (auto id = static_cast<NodeId>(graph.nodes().size()); id-- > 0;)
    known[id] = accept(graph.node(id), known);
  return known;
}

using Uses = IdMap<std::vector<NodeId>>;

bool is_move(const Node& node) {
  return has_trait(node.op, OpTrait::view) || has_trait(node.op, OpTrait::movement);
}

/// Per node: do only norms, such sums and folds read its sum, at first hand or moved? So do the moves between.
IdMap<bool> sums_for_norms(const Graph& graph, const Uses& uses) {
  IdMap<bool> known = from_the_last(graph, [&](const Node& node, const IdMap<bool>& later) {
    if (node.op != Op::add && node.op != Op::sub && !is_move(node)) return false;
    const ValueId sum = node.outputs[0];
    return !uses[sum].empty() && std::ranges::all_of(uses[sum], [&](NodeId id) {
      const Node& reader = graph.node(id);
      const bool folds = has_trait(reader.op, OpTrait::row_norm) || has_trait(reader.op, OpTrait::reduction);
      return (folds && reader.inputs[0] == sum) || later[id];
    });
  });
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {  // what is moved before it is added is no sum
    const Node& node = graph.nodes()[i];
    if (!is_move(node)) continue;
    const NodeId producer = graph.value(node.inputs[0]).producer;
    if (producer == no_node || !known[producer]) known[static_cast<NodeId>(i)] = false;
  }
  return known;
}

/// Per node: is it pointwise work whose result, one number for many elements, only arithmetic reads? Such are
/// the gates of squeeze and excitation.
IdMap<bool> gates(const Graph& graph, const Uses& uses) {
  constexpr std::int64_t many = 16;
  return from_the_last(graph, [&](const Node& node, const IdMap<bool>& /*known*/) {
    if (!has_trait(node.op, OpTrait::pointwise) || node.inputs.size() != 1) return false;
    const std::vector<NodeId>& readers = uses[node.outputs[0]];
    const std::int64_t elements = graph.type(node.outputs[0]).element_count();
    return !readers.empty() && std::ranges::all_of(readers, [&](NodeId id) {
      const Node& reader = graph.node(id);
      return has_trait(reader.op, OpTrait::arithmetic) &&
             graph.type(reader.outputs[0]).element_count() >= many * elements;
    });
  });
}

/// Per node: does no product read its result, at first hand or later?
IdMap<bool> behind_products(const Graph& graph, const Uses& uses) {
  return from_the_last(graph, [&](const Node& node, const IdMap<bool>& known) {
    return std::ranges::all_of(node.outputs, [&](ValueId output) {
      return std::ranges::all_of(uses[output], [&](NodeId reader) {
        return known[reader] && !op_info(graph.node(reader).op).facts.multiplies();
      });
    });
  });
}

/// Per node: is it a product of one row by a weight of its own?
IdMap<bool> row_products(const Graph& graph, const Uses& uses) {
  return from_the_last(graph, [&](const Node& node, const IdMap<bool>& /*known*/) {
    if (node.op != Op::matmul) return false;
    const TensorType& left = graph.type(node.inputs[0]);
    const bool is_row =
        left.dtype == DType::f32 && left.shape.back().is_known() && left.shape.product() == left.shape.back();
    const ValueId weight = own_operand(graph, uses, node.inputs[1]).id;
    return is_row && graph.is_constant(weight) && graph.type(weight).rank() == 2;
  });
}

/// Per node: do only such products, and nodes of which the same is true, read its result?
IdMap<bool> rows_for(const Graph& graph, const Uses& uses, const IdMap<bool>& products) {
  return from_the_last(graph, [&](const Node& node, const IdMap<bool>& known) {
    if (node.outputs.size() != 1) return false;
    const ValueId row = node.outputs[0];
    return !uses[row].empty() && std::ranges::all_of(uses[row], [&](NodeId id) {
      const Node& reader = graph.node(id);
      return products[id] ? reader.inputs[0] == row : known[id] && !op_info(reader.op).facts.multiplies();
    });
  });
}

class Converter {
 public:
  Converter(const Graph& source, DType narrow, const NarrowOptions& options)
      : source_(source),
        uses_(source.uses()),
        narrow_(narrow),
        keeps_wide_(options.keep_wide),
        is_sum_(sums_for_norms(source, uses_)),
        is_gate_(gates(source, uses_)),
        is_last_(behind_products(source, uses_)),
        counts_(made_of_integers(source)),
        is_place_(become_integers(source)),
        is_exponent_(become_powers(source)),
        multiplies_row_(source.nodes().size(), false),
        is_row_(source.nodes().size(), false),
        is_given_(source.values().size(), false),
        mixes_products_(options.mixed_products && options.keep_wide && narrow == DType::bf16),
        stored_(source),
        wide_(source.values().size(), no_value) {
    if (mixes_products_) {
      multiplies_row_ = row_products(source, uses_);
      is_row_ = rows_for(source, uses_, multiplies_row_);
    }
    for (const ValueId id : source.outputs) is_given_[id] = true;
    stored_.add_inputs();
    for (const ValueId id : source.inputs)
      if (is_f32(id)) stored_.set(id, cast(result_, stored_.mapped(id), narrow_));
  }

  Graph convert() {
    for (std::size_t i = 0; i < source_.nodes().size(); ++i) add(static_cast<NodeId>(i));
    std::vector<ValueId> outputs;
    outputs.reserve(source_.outputs.size());
    for (const ValueId id : source_.outputs) {
      outputs.push_back(wide(id));
      if (is_f32(id)) wide_[id] = outputs.back();  // what is given twice is converted once
    }
    return stored_.finish(std::move(outputs));
  }

 private:
  [[nodiscard]] bool is_f32(ValueId id) const { return source_.type(id).dtype == DType::f32; }
  [[nodiscard]] bool is_wide(ValueId id) const { return wide_[id] != no_value || source_.is_constant(id); }

  [[nodiscard]] Tensor narrow(const Tensor& constant, bool keeps_sums) const {
    const std::string name = fmt::format("{} {}", dtype_name(narrow_), keeps_sums);
    const auto change = [keeps_sums, to = narrow_](const Tensor& wide) {
      return keeps_sums ? rounded_filters(wide) : rounded(wide, to);
    };
    if (const TableReadings readings = readings_of(constant))
      return make_changed_table(readings, name, change).reshaped(constant.dims());
    return made_of(name, {constant}, [&] {
      return Tensor::later(narrow_, constant.dims(), [constant, change] { return change(constant); });
    });
  }

  /// Narrow, if the source has it as f32. A constant is rounded as its first reader asks.
  ValueId stored(ValueId id, bool is_filter = false) {
    if (id == no_value || stored_.is_mapped(id)) return stored_.mapped(id);
    if (!source_.is_constant(id)) {
      stored_.set(id, cast(result_, wide_[id], narrow_));
    } else if (is_f32(id)) {
      const Tensor& constant = *source_.value(id).constant;
      const bool keeps_sums = is_filter && narrow_ == DType::bf16;
      stored_.set(id, result_.add_constant(narrow(constant, keeps_sums), source_.value(id).name));
    }
    return stored_.mapped(id);
  }

  /// As f32, if the source has it so.
  ValueId wide(ValueId id) {
    if (id == no_value || !is_f32(id)) return stored(id);
    if (wide_[id] != no_value) return wide_[id];
    if (!source_.is_constant(id)) return cast(result_, stored_.mapped(id), DType::f32);
    return wide_[id] = result_.add_constant(*source_.value(id).constant, source_.value(id).name);
  }

  /// As f32 where it is at hand so. Beside bf16, which f32 mixes with, single numbers always: they cost nothing, and one over a count
  /// of elements, rounded, would move all means alike.
  ValueId parameter(ValueId id) {
    const bool is_number = id != no_value && narrow_ == DType::bf16 && source_.is_constant(id) &&
                           source_.value(id).constant->size() == 1;
    return is_number || (keeps_wide_ && id != no_value && is_wide(id)) ? wide(id) : stored(id);
  }

  /// Pointwise work on a few numbers that are both given and read, as states of loops are: converting them would be a kernel of
  /// its own, and take longer than moving them twice as wide.
  [[nodiscard]] bool is_small_state(const Node& node) const {
    constexpr std::int64_t most = 1 << 16;
    const ValueId result = node.outputs[0];
    const TensorType& type = source_.type(result);
    return has_trait(node.op, OpTrait::pointwise) && is_given_[result] && !uses_[result].empty() &&
           type.is_known() && type.element_count() <= most;
  }

  /// Does the node compare or convert f32 that is at hand so? Places rounded to 16 bits are other places.
  [[nodiscard]] bool asks_about_wide(const Node& node) const {
    if (!has_trait(node.op, OpTrait::pointwise) || is_f32(node.outputs[0])) return false;
    const auto is_ready = [&](ValueId id) { return id == no_value || !is_f32(id) || is_wide(id); };
    return std::ranges::all_of(node.inputs, is_ready) && std::ranges::any_of(node.inputs, [&](ValueId id) {
             return id != no_value && wide_[id] != no_value && !source_.is_constant(id);
           });
  }

  /// Is the node's result f32, or made of f32? What a loop reads and gives, whose body is converted by itself; what is quantised; positions, coordinates and exponents; sums that norms read; gates; the last folds, and pointwise work on what is
  /// f32: rows of tables, or behind the last folds.
  [[nodiscard]] bool stays_wide(NodeId id) const {
    const Node& node = source_.node(id);
    const bool quantizes = node.op == Op::round && node.inputs.size() > 1;  // by scales, which are f32
    if (node.op == Op::loop || quantizes || counts_[id] || is_place_[id] || is_exponent_[id] ||
        asks_about_wide(node))
      return true;
    if (!keeps_wide_ || node.op == Op::cast || !is_f32(node.outputs[0])) return false;
    if (is_sum_[id] || is_gate_[id] || is_small_state(node)) return true;
    if (multiplies_row_[id]) return is_row_[id] || is_wide(node.inputs[0]);
    const bool folds = has_trait(node.op, OpTrait::reduction) || has_trait(node.op, OpTrait::normalization);
    if ((is_last_[id] || is_row_[id]) && folds) return true;
    if (node.op == Op::gather) return is_wide(node.inputs[0]);
    const bool follows = has_trait(node.op, OpTrait::arithmetic) ||
                         ((is_last_[id] || is_row_[id]) &&
                          (has_trait(node.op, OpTrait::pointwise) || has_trait(node.op, OpTrait::view)));
    return follows && std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
             return input == no_value || !is_f32(input) || is_wide(input);
           });
  }

  /// Input i of a node, as the node reads it.
  ValueId input(NodeId id, std::size_t i, bool result_is_wide) {
    const Node& node = source_.node(id);
    const bool is_weight = i == 1 && multiplies_row_[id];
    if (result_is_wide && !is_weight) return wide(node.inputs[i]);
    const bool is_filter = i == 1 && node.op == Op::conv;
    const bool may_be_wide =
        is_filter ? mixes_products_ && multiplies_by_channel(source_.type(node.inputs[1]), node.attributes)
                  : op_info(node.op).facts.may_be_wide(i);
    return may_be_wide ? parameter(node.inputs[i]) : stored(node.inputs[i], is_filter);
  }

  /// Types follow from the inputs, except where an attribute says them: those that count convert afterwards.
  void add(NodeId id) {
    const Node& node = source_.node(id);
    const bool result_is_wide = stays_wide(id);
    std::vector<ValueId> inputs(node.inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = input(id, i, result_is_wide);
    Attributes attributes = node.attributes;
    if (node.op == Op::cast && !result_is_wide) {
      if (attributes.string("to") == "f32") attributes.set("to", std::string(dtype_name(narrow_)));
      if (attributes.string("to") == dtype_name(result_.type(inputs[0]).dtype)) {
        stored_.set(node.outputs[0], inputs[0]);
        return;
      }
    }
    std::vector<ValueId> outputs = result_.add_node(node.op, inputs, attributes, node.name);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!result_is_wide && result_.type(outputs[i]).dtype == DType::f32)
        outputs[i] = cast(result_, outputs[i], narrow_);
      result_.rename(outputs[i], source_.value(node.outputs[i]).name);
      if (result_is_wide && is_f32(node.outputs[i]))
        wide_[node.outputs[i]] = outputs[i];
      else
        stored_.set(node.outputs[i], outputs[i]);
    }
  }

  const Graph& source_;
  Uses uses_;
  DType narrow_;
  bool keeps_wide_;
  IdMap<bool> is_sum_;          ///< per node: sums_for_norms
  IdMap<bool> is_gate_;         ///< per node: gates
  IdMap<bool> is_last_;         ///< per node: behind_products
  IdMap<bool> counts_;          ///< per node: made_of_integers
  IdMap<bool> is_place_;        ///< per node: become_integers
  IdMap<bool> is_exponent_;     ///< per node: become_powers
  IdMap<bool> multiplies_row_;  ///< per node: row_products, if asked for
  IdMap<bool> is_row_;          ///< per node: rows_for these
  IdMap<bool> is_given_;        ///< per value: an output of the graph
  bool mixes_products_;
  GraphCopier stored_;  ///< values as stored
  Graph& result_ = stored_.graph();
  IdMap<ValueId> wide_;  ///< per value: in f32, or no_value
};

}  // namespace

Graph store_narrow(const Graph& graph, DType narrow, const NarrowOptions& options) {
  return Converter(graph, narrow, options).convert();
}

}  // namespace sylvite
