// Values without elements are constants, and what reads them is simpler:
//   exp(x[0,8])                       ->  a constant of [0,8]
//   concat(past[2,0,8], x[2,3,8])     ->  x
//   matmul(a[4,0], b[0,6])            ->  zeros of [4,6]
//   conv(x[1,0,8,8], w[4,0,3,3], b)   ->  the bias, at every pixel
//   attention(q, k[2,0,8], v[2,0,8])  ->  zeros
//   scatter_nd(x, indices[0,1], u[0]) ->  x
// So no kernel has an extent of 0, and none divides by one.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

/// A value whose extents are open beside one of 0 stays.
bool has_nothing(const TensorType& type) {
  return type.is_known() && type.element_count() == 0;
}

/// Is the result the same whatever other operands are, where one has no elements?
bool folds_nothing(Op op) {
  static constexpr Op table[] = {Op::reduce_sum,        Op::reduce_max,  Op::reduce_min,
                                 Op::reduce_prod,       Op::conv,        Op::matmul,
                                 Op::quantized_matmul,  Op::matmul_bits, Op::quantized_matmul_bits,
                                 Op::filter_gradient,   Op::attention,   Op::attention_sums,
                                 Op::attention_gradient};
  return std::ranges::find(table, op) != std::end(table);
}

class EmptyFolder {
 public:
  explicit EmptyFolder(GraphRewriter& rewriter) : rewriter_(rewriter) {}

  bool fold(const Node& node) {
    const auto is_empty = [&](ValueId id) {
      return id != no_value && has_nothing(rewriter_.source().type(id));
    };
    if (std::ranges::all_of(node.outputs, is_empty)) {
      for (const ValueId output : node.outputs) set_constant(output, zeros_like(output));
      return true;
    }
    if (std::ranges::none_of(node.inputs, is_empty)) return false;
    if (node.op == Op::concat) return join_others(node, is_empty);
    if (node.op == Op::pad && node.inputs.size() > 1)
      return fill(node.outputs[0], rewriter_.mapped(node.inputs[1]));
    if (node.op == Op::conv && node.inputs.size() > 2 && node.inputs[2] != no_value)
      return fill(node.outputs[0], by_channel(node.outputs[0], node.inputs[2]));
    const bool writes = node.op == Op::scatter_elements || node.op == Op::scatter_nd ||
                        node.op == Op::write_elements || node.op == Op::write_nd;
    if (writes && is_empty(node.inputs[2])) {
      rewriter_.set(node.outputs[0], rewriter_.mapped(node.inputs[0]));
      return true;
    }
    return evaluate(node, is_empty);
  }

 private:
  [[nodiscard]] Tensor zeros_like(ValueId id) const {
    const TensorType& type = rewriter_.source().type(id);
    return {type.dtype, type.dims()};
  }
  void set_constant(ValueId output, Tensor value) {
    rewriter_.set(output,
                  rewriter_.graph().add_constant(std::move(value), rewriter_.source().value(output).name));
  }

  template <typename IsEmpty>
  bool join_others(const Node& node, const IsEmpty& is_empty) {
    std::vector<ValueId> others = node.inputs;
    std::erase_if(others, is_empty);
    if (others.size() > 1)
      rewriter_.replace(node, Op::concat, rewriter_.mapped(others), node.attributes);
    else
      rewriter_.set(node.outputs[0], rewriter_.mapped(others.at(0)));
    return true;
  }

  /// A number for each channel, as images take it.
  ValueId by_channel(ValueId output, ValueId numbers) {
    const TensorType& image = rewriter_.source().type(output);
    Dims dims(static_cast<std::size_t>(image.rank()), 1);
    dims[1] = image.dims()[1];
    return add_cast(rewriter_.graph(), add_reshape(rewriter_.graph(), rewriter_.mapped(numbers), dims),
                    image.dtype);
  }

  /// `value`: of the new graph.
  bool fill(ValueId output, ValueId value) {
    Graph& graph = rewriter_.graph();
    const ValueId filled =
        graph.add(Op::broadcast_to, {value}, {{"shape", rewriter_.source().type(output).dims()}});
    rewriter_.set(output, filled);
    return true;
  }

  /// What is the same everywhere is filled, so that its size is no size of a weight.
  void set_values(ValueId output, const Tensor& values) {
    const std::size_t step = dtype_size(values.dtype());
    const auto* bytes = static_cast<const std::byte*>(values.data());
    const auto count = static_cast<std::size_t>(values.byte_size());
    if (count <= step || !std::equal(bytes + step, bytes + count, bytes)) return set_constant(output, values);
    Tensor one(values.dtype(), {});
    std::copy_n(bytes, step, static_cast<std::byte*>(one.mutable_data()));
    rewriter_.set(output, rewriter_.graph().add(Op::broadcast_to, {rewriter_.graph().add_constant(one)},
                                                {{"shape", values.dims()}}));
  }

  template <typename IsEmpty>
  bool evaluate(const Node& node, const IsEmpty& is_empty) {
    const bool ignores_others = folds_nothing(node.op);
    std::vector<Tensor> values(node.inputs.size());
    std::vector<const Tensor*> inputs(node.inputs.size(), nullptr);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (input == no_value) continue;
      const ValueId now = rewriter_.mapped(input);
      if (rewriter_.graph().is_constant(now))
        values[i] = *rewriter_.graph().value(now).constant;
      else if (is_empty(input) || (ignores_others && rewriter_.source().type(input).is_known()))
        values[i] = zeros_like(input);
      else
        return false;
      inputs[i] = &values[i];
    }
    std::vector<TensorType> types;
    for (const ValueId output : node.outputs) types.push_back(rewriter_.source().type(output));
    if (node.op == Op::loop || !std::ranges::all_of(types, &TensorType::is_known)) return false;
    const std::vector<Tensor> results = evaluate_node(node.op, inputs, node.attributes, types);
    for (std::size_t i = 0; i < results.size(); ++i) set_values(node.outputs[i], results[i]);
    return true;
  }

  GraphRewriter& rewriter_;
};

}  // namespace

Graph fold_empty(const Graph& graph) {
  return rewrite_nodes(
      graph, [](GraphRewriter& rewriter, const Node& node) { return EmptyFolder(rewriter).fold(node); });
}

}  // namespace sylvite
