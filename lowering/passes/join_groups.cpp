// Before: y = conv(x, w)    x [64, 576, 14, 14], of 24 groups
// After:  y = concat(conv(x[:, 0:144], v[0]), conv(x[:, 144:288], v[1]), ...)
// v has the filters of six groups each, with zeros where a group reads no channel of its neighbours. A filter that is no weight
// cannot be packed so ahead, and tensor cores take these products as they take any. Its gradient is made of theirs. Wide groups stay
// where a template takes them: filters that each image has for itself are groups as wide as images.
// Before: y = conv(x, W)   x [64, 60, 28, 28], of 15 groups: no number of four channels that divides them makes a unit
// After:  y = conv(x, V)   of one group, whose filter V has zeros where a group reads no channel of the others
// So a channel that is not finite makes NaN of results of the groups that it is joined with.

#include "lowering/passes/join_groups.h"

#include <functional>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/images.h"
#include "lowering/plan/grouped_filter.h"
#include "lowering/plan/joined_groups.h"
#include "lowering/plan/kernel.h"

namespace sylvite {
namespace {

/// Neighbouring groups make `units` units of `joined` groups each.
struct Units {
  std::int64_t units = 0, joined = 0;
  std::int64_t inputs = 0, outputs = 0;  ///< channels of a group
};

/// Few units, whose products fill tensor cores: each group more costs as many products again.
Units units_of(std::int64_t groups, std::int64_t inputs, std::int64_t outputs) {
  constexpr std::int64_t most_units = 4, least_channels = 64, vector = 8;
  std::int64_t joined = 1;
  for (; joined < groups; ++joined) {
    const bool is_whole =
        groups % joined == 0 && joined * inputs % vector == 0 && joined * outputs % vector == 0;
    if (is_whole && joined * most_units >= groups && joined * inputs >= least_channels) break;
  }
  return {groups / joined, joined, inputs, outputs};
}

/// What stands where dims `row` and `column` are the same group; zero elsewhere.
ValueId own_groups(Graph& graph, ValueId x, std::size_t rank, std::size_t row, std::size_t column,
                   std::int64_t joined) {
  Dims dims(rank, 1);
  dims[row] = dims[column] = joined;
  Tensor is_own(DType::boolean, dims);
  for (std::int64_t i = 0; i < joined; ++i) is_own.set_double(i * joined + i, 1);
  const ValueId zero = graph.add_constant(Tensor(graph.type(x).dtype, {}));
  return graph.add(Op::where, {graph.add_constant(std::move(is_own)), x, zero});
}

/// From filters [outputs of all groups, inputs of one, window...] to [units, outputs of one, inputs of one, window...].
ValueId joined_filters(Graph& graph, ValueId filter, const Units& units) {
  const Dims dims = graph.type(filter).dims();
  const Dims window(dims.begin() + 2, dims.end());
  const std::int64_t taps = product(window, 0, window.size());
  const ValueId apart =
      add_reshape(graph, filter, {units.units, units.joined, units.outputs, 1, units.inputs, taps});
  const ValueId spread = own_groups(graph, apart, 6, 1, 3, units.joined);
  Dims whole = {units.units, units.joined * units.outputs, units.joined * units.inputs};
  whole.insert(whole.end(), window.begin(), window.end());
  return add_reshape(graph, spread, whole);
}

/// `make` of each unit, side by side along `axis`.
void replace_by_units(GraphRewriter& rewriter, const Node& node, const Units& units, std::int64_t axis,
                      const std::function<ValueId(std::int64_t unit)>& make) {
  std::vector<ValueId> parts;
  parts.reserve(static_cast<std::size_t>(units.units));
  for (std::int64_t unit = 0; unit < units.units; ++unit) parts.push_back(make(unit));
  const ValueId whole =
      parts.size() == 1 ? parts[0] : rewriter.graph().add(Op::concat, parts, {{"axis", axis}}, node.name);
  rewriter.set(node.outputs[0], whole);
}

Attributes of_one_group(const Node& node) {
  Attributes attributes = node.attributes;
  attributes.set("groups", std::int64_t{1});
  return attributes;
}

bool join_convolution(GraphRewriter& rewriter, const Node& node, const Units& units) {
  Graph& graph = rewriter.graph();
  const ValueId x = rewriter.mapped(node.inputs[0]);
  const ValueId filters = joined_filters(graph, rewriter.mapped(node.inputs[1]), units);
  const std::int64_t inputs = units.joined * units.inputs, outputs = units.joined * units.outputs;
  const Dims dims = graph.type(filters).dims();
  replace_by_units(rewriter, node, units, 1, [&](std::int64_t unit) {
    const ValueId filter =
        add_reshape(graph, add_slice_along(graph, filters, 0, unit, 1), {dims.begin() + 1, dims.end()});
    std::vector<ValueId> operands = {add_slice_along(graph, x, 1, unit * inputs, inputs), filter};
    if (node.inputs.size() > 2 && node.inputs[2] != no_value)
      operands.push_back(add_slice_along(graph, rewriter.mapped(node.inputs[2]), 0, unit * outputs, outputs));
    return graph.add(Op::conv, operands, of_one_group(node), node.name);
  });
  return true;
}

bool join_gradient(GraphRewriter& rewriter, const Node& node, const Units& units) {
  Graph& graph = rewriter.graph();
  const ValueId grad = rewriter.mapped(node.inputs[0]), x = rewriter.mapped(node.inputs[1]);
  const std::int64_t inputs = units.joined * units.inputs, outputs = units.joined * units.outputs;
  replace_by_units(rewriter, node, units, 2, [&](std::int64_t unit) {
    const ValueId whole = graph.add(Op::filter_gradient,
                                    {add_slice_along(graph, grad, 1, unit * outputs, outputs),
                                     add_slice_along(graph, x, 1, unit * inputs, inputs)},
                                    of_one_group(node), node.name);
    const Dims dims = graph.type(whole).dims();
    const ValueId apart = add_reshape(
        graph, whole, {dims[0], dims[1], units.joined, units.outputs, units.joined, units.inputs});
    const ValueId own = graph.add(Op::reduce_sum, {own_groups(graph, apart, 6, 2, 4, units.joined)},
                                  {{"axes", Dims{4}}, {"keepdims", std::int64_t{0}}});
    return add_reshape(graph, own, {dims[0], dims[1], outputs, units.inputs});
  });
  return true;
}

TensorType innermost(TensorType type) {
  type.layout.channel_block = static_cast<int>(type.dims().at(1));
  return type;
}

/// Does a template take the convolution's groups, where images and filter have their channels innermost?
bool has_group_template(const Graph& graph, const Node& node, const LoweringOptions& options) {
  if (!options.refuse_template || node.op != Op::conv) return false;
  Graph body;
  std::vector<ValueId> operands = {body.add_input("x", innermost(graph.type(node.inputs[0]))),
                                   body.add_input("w", innermost(graph.type(node.inputs[1])))};
  std::vector<bool> is_weight = {false, false};
  if (node.inputs.size() > 2 && node.inputs[2] != no_value) {
    operands.push_back(body.add_input("b", graph.type(node.inputs[2])));
    is_weight.push_back(graph.is_constant(node.inputs[2]));
  }
  const ValueId y = body.add(Op::conv, operands, node.attributes);
  body.value(y).type = innermost(body.type(y));
  body.outputs = {y};
  return options.refuse_template(make_kernel(body, std::move(is_weight))).empty();
}

/// Of a constant filter, whose zeros are written once.
bool join_constant(GraphRewriter& rewriter, const Node& node, const LoweringOptions& options) {
  const Tensor& filter = *rewriter.source().value(node.inputs[1]).constant;
  const TensorType& x = rewriter.source().type(node.inputs[0]);
  const std::int64_t groups = node.attributes.integer("groups");
  const std::int64_t inputs = filter.dims().at(1), outputs = filter.dims().at(0) / groups;
  const std::int64_t joined = groups_to_join(groups, inputs, outputs);
  if (joined == 1 || !is_for_tensor_cores(x.dtype, options.tf32) || !is_image(x)) return false;
  std::vector<ValueId> operands;
  for (const ValueId input : node.inputs) operands.push_back(rewriter.mapped(input));
  operands[1] = rewriter.graph().add_constant(spread_filter(filter, groups, joined * outputs));
  Attributes attributes = node.attributes;
  attributes.set("groups", groups / joined);
  rewriter.replace(node, Op::conv, std::move(operands), std::move(attributes));
  return true;
}

bool join_group(GraphRewriter& rewriter, const Node& node, const LoweringOptions& options) {
  if (node.op != Op::conv && node.op != Op::filter_gradient) return false;
  if (node.op == Op::conv && rewriter.source().is_constant(node.inputs[1]))
    return join_constant(rewriter, node, options);
  const Graph& source = rewriter.source();
  const bool is_gradient = node.op == Op::filter_gradient;
  const std::int64_t groups = node.attributes.integer("groups");
  if (groups == 1) return false;
  const TensorType &x = source.type(node.inputs[is_gradient ? 1 : 0]),
                   &y = source.type(is_gradient ? node.inputs[0] : node.outputs[0]);
  const std::int64_t inputs = x.dims().at(1) / groups, outputs = y.dims().at(1) / groups;
  const bool is_narrow = inputs == 1 || outputs == 1;  // depthwise convolutions have templates
  const bool fills_vectors = x.dims()[1] % 8 == 0 && y.dims()[1] % 8 == 0;
  if (is_narrow || !fills_vectors || !may_lie_innermost(x, options.tf32) ||
      !may_lie_innermost(y, options.tf32) || has_group_template(source, node, options))
    return false;
  const Units units = units_of(groups, inputs, outputs);
  return (is_gradient ? join_gradient : join_convolution)(rewriter, node, units);
}

}  // namespace

Graph join_groups(const Graph& graph, const LoweringOptions& options) {
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return join_group(rewriter, node, options); });
}

}  // namespace sylvite
