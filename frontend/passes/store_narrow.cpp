#include "frontend/passes/store_narrow.h"

#include <algorithm>
#include <map>

#include "frontend/graph/views.h"
#include "frontend/ops/infer.h"
#include "frontend/ops/op_table.h"
#include "frontend/passes/round_constants.h"

namespace sylvite {
namespace {

ValueId cast(Graph& graph, ValueId id, DType to) {
  return graph.add(Op::cast, {id}, {{"to", std::string(dtype_name(to))}});
}

/// Per node of a graph: do only norms and such sums read its sum?
std::vector<bool> sums_for_norms(const Graph& graph) {
  std::vector<bool> result(graph.nodes().size(), false);
  const auto uses = graph.uses();
  for (std::size_t i = graph.nodes().size(); i-- > 0;) {
    const Node& node = graph.nodes()[i];
    if (node.op != Op::add && node.op != Op::sub) continue;
    const ValueId sum = node.outputs[0];
    const std::vector<NodeId>& readers = uses[static_cast<std::size_t>(sum)];
    result[i] = !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](NodeId id) {
      const Node& reader = graph.node(id);
      return (has_trait(reader.op, OpTrait::row_norm) && reader.inputs[0] == sum) ||
             result[static_cast<std::size_t>(id)];
    });
  }
  return result;
}

/// Per node of a graph: is it pointwise work whose result, one number for many elements, only arithmetic
/// reads? Such are the gates of squeeze and excitation.
std::vector<bool> gates(const Graph& graph) {
  constexpr std::int64_t many = 16;
  std::vector<bool> result(graph.nodes().size(), false);
  const auto uses = graph.uses();
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (!has_trait(node.op, OpTrait::pointwise) || node.inputs.size() != 1) continue;
    const std::vector<NodeId>& readers = uses[static_cast<std::size_t>(node.outputs[0])];
    const std::int64_t elements = graph.type(node.outputs[0]).element_count();
    result[i] = !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](NodeId id) {
      const Node& reader = graph.node(id);
      return has_trait(reader.op, OpTrait::arithmetic) &&
             graph.type(reader.outputs[0]).element_count() >= many * elements;
    });
  }
  return result;
}

/// Per node: does no product read its result, at first hand or later?
std::vector<bool> behind_products(const Graph& graph) {
  std::vector<bool> result(graph.nodes().size(), true);
  const auto uses = graph.uses();
  for (std::size_t i = graph.nodes().size(); i-- > 0;) {
    for (const ValueId output : graph.nodes()[i].outputs)
      for (const NodeId reader : uses[static_cast<std::size_t>(output)])
        result[i] = result[i] && result[static_cast<std::size_t>(reader)] &&
                    !op_info(graph.node(reader).op).facts.multiplies();
  }
  return result;
}

/// Per node: is it a product of one row by a weight of its own?
std::vector<bool> row_products(const Graph& graph) {
  std::vector<bool> result;
  const auto uses = graph.uses();
  for (const Node& node : graph.nodes()) {
    result.push_back(false);
    if (node.op != Op::matmul) continue;
    const TensorType& left = graph.type(node.inputs[0]);
    const bool is_row = left.dtype == DType::f32 && left.shape.back().is_known() &&
                        left.element_count() == left.shape.back().extent;
    const ValueId weight = own_operand(graph, uses, node.inputs[1]).id;
    result.back() = is_row && graph.is_constant(weight) && graph.type(weight).rank() == 2;
  }
  return result;
}

/// Per node: do only such products, and nodes of which the same is true, read its result?
std::vector<bool> rows_for(const Graph& graph, const std::vector<bool>& products) {
  std::vector<bool> result(graph.nodes().size(), false);
  const auto uses = graph.uses();
  for (std::size_t i = graph.nodes().size(); i-- > 0;) {
    const Node& node = graph.nodes()[i];
    if (node.outputs.size() != 1) continue;
    const ValueId row = node.outputs[0];
    const std::vector<NodeId>& readers = uses[static_cast<std::size_t>(row)];
    result[i] = !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](NodeId id) {
      const auto at = static_cast<std::size_t>(id);
      const Node& reader = graph.node(id);
      return products[at] ? reader.inputs[0] == row : result[at] && !op_info(reader.op).facts.multiplies();
    });
  }
  return result;
}

class Converter {
 public:
  Converter(const Graph& source, DType narrow, const NarrowOptions& options)
      : source_(source),
        narrow_(narrow),
        keeps_wide_(options.keep_wide),
        is_sum_(sums_for_norms(source)),
        is_gate_(gates(source)),
        is_last_(behind_products(source)),
        multiplies_row_(source.nodes().size(), false),
        is_row_(source.nodes().size(), false),
        mixes_products_(options.mixed_products && options.keep_wide && narrow == DType::bf16) {
    if (mixes_products_) {
      multiplies_row_ = row_products(source);
      is_row_ = rows_for(source, multiplies_row_);
    }
    result_.name = source.name;
    for (const ValueId id : source.inputs) {
      const ValueId in = result_.add_input(source.value(id).name, source.type(id));
      map_[id] = is_f32(id) ? cast(result_, in, narrow_) : in;
    }
  }

  Graph convert() {
    for (std::size_t i = 0; i < source_.nodes().size(); ++i) add(static_cast<NodeId>(i));
    for (const ValueId id : source_.outputs) result_.outputs.push_back(wide(id));
    for (std::size_t i = 0; i < source_.outputs.size(); ++i)
      result_.output_names.push_back(source_.output_name(i));
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool is_f32(ValueId id) const { return source_.type(id).dtype == DType::f32; }
  [[nodiscard]] bool is_wide(ValueId id) const { return wide_.contains(id) || source_.is_constant(id); }

  /// Narrow, if the source has it as f32. A constant is rounded as its first reader asks.
  ValueId stored(ValueId id, bool is_filter = false) {
    if (id == no_value) return no_value;
    if (const auto found = map_.find(id); found != map_.end()) return found->second;
    if (!source_.is_constant(id)) return map_[id] = cast(result_, wide_.at(id), narrow_);
    const Tensor& constant = *source_.value(id).constant;
    if (constant.dtype() != DType::f32)
      return map_[id] = result_.add_constant(constant, source_.value(id).name);
    const bool keeps_sums = is_filter && narrow_ == DType::bf16;
    const Tensor narrow = Tensor::later(narrow_, constant.dims(), [constant, keeps_sums, to = narrow_] {
      return keeps_sums ? rounded_filters(constant) : rounded(constant, to);
    });
    return map_[id] = result_.add_constant(narrow, source_.value(id).name);
  }

  /// As f32, if the source has it so.
  ValueId wide(ValueId id) {
    if (id == no_value || !is_f32(id)) return stored(id);
    if (const auto found = wide_.find(id); found != wide_.end()) return found->second;
    return source_.is_constant(id)
               ? wide_[id] = result_.add_constant(*source_.value(id).constant, source_.value(id).name)
               : cast(result_, map_.at(id), DType::f32);
  }

  /// As f32 where it is at hand so.
  ValueId parameter(ValueId id) {
    return keeps_wide_ && id != no_value && is_wide(id) ? wide(id) : stored(id);
  }

  /// Is the node's result f32? Sums that norms read; gates; the last folds, and pointwise work on what is
  /// f32: rows of tables, or behind the last folds.
  [[nodiscard]] bool stays_wide(NodeId id) const {
    const Node& node = source_.node(id);
    const auto at = static_cast<std::size_t>(id);
    if (!keeps_wide_ || node.op == Op::cast || !is_f32(node.outputs[0])) return false;
    if (is_sum_[at] || is_gate_[at]) return true;
    if (multiplies_row_[at]) return is_row_[at] || is_wide(node.inputs[0]);
    const bool folds = has_trait(node.op, OpTrait::reduction) || has_trait(node.op, OpTrait::normalization);
    if ((is_last_[at] || is_row_[at]) && folds) return true;
    if (node.op == Op::gather) return is_wide(node.inputs[0]);
    const bool follows = has_trait(node.op, OpTrait::arithmetic) ||
                         ((is_last_[at] || is_row_[at]) &&
                          (has_trait(node.op, OpTrait::pointwise) || has_trait(node.op, OpTrait::view)));
    return follows && std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
             return input == no_value || !is_f32(input) || is_wide(input);
           });
  }

  /// Input i of a node, as the node reads it.
  ValueId input(NodeId id, std::size_t i, bool result_is_wide) {
    const Node& node = source_.node(id);
    const bool is_weight = i == 1 && multiplies_row_[static_cast<std::size_t>(id)];
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
    if (node.op == Op::cast) {
      if (attributes.string("to") == "f32") attributes.set("to", std::string(dtype_name(narrow_)));
      if (attributes.string("to") == dtype_name(result_.type(inputs[0]).dtype)) {
        map_[node.outputs[0]] = inputs[0];
        return;
      }
    }
    std::vector<ValueId> outputs = result_.add_node(node.op, inputs, attributes, node.name);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!result_is_wide && result_.type(outputs[i]).dtype == DType::f32)
        outputs[i] = cast(result_, outputs[i], narrow_);
      result_.rename(outputs[i], source_.value(node.outputs[i]).name);
      const bool is_wide_value = result_is_wide && is_f32(node.outputs[i]);
      (is_wide_value ? wide_ : map_)[node.outputs[i]] = outputs[i];
    }
  }

  const Graph& source_;
  DType narrow_;
  bool keeps_wide_;
  std::vector<bool> is_sum_;          ///< per node: sums_for_norms
  std::vector<bool> is_gate_;         ///< per node: gates
  std::vector<bool> is_last_;         ///< per node: behind_products
  std::vector<bool> multiplies_row_;  ///< per node: row_products, if asked for
  std::vector<bool> is_row_;          ///< per node: rows_for these
  bool mixes_products_;
  Graph result_;
  std::map<ValueId, ValueId> map_;   ///< as stored
  std::map<ValueId, ValueId> wide_;  ///< in f32
};

}  // namespace

Graph store_narrow(const Graph& graph, DType narrow, const NarrowOptions& options) {
  return Converter(graph, narrow, options).convert();
}

}  // namespace sylvite
