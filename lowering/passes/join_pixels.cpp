// Before: y [N, F, H', W'] = conv(x [N, C, H, W], W [F, C, ky, kx])   of one or few channels, and few results or long windows
// After:  x [N, H, W/8, C*8] has eight pixels as the channels of one, as has y [N, H', W'/8, 8*F], whose filter holds W eight
//         times, each a step further, with zeros around.
// Tensor cores take whole vectors of channels and many results at once: of few channels and few results they waste nearly all. In
// long windows the zeros are few beside the taps, however many results there are.

#include <algorithm>

#include "base/rounding.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_results = 32, long_in_runs = 4, most_channels = 4;

/// Which vectors of pixels the windows of a vector of results meet, from the one above the first of these: [first, first + count).
struct Reach {
  std::int64_t run, stride, first, count;

  Reach(std::int64_t run, std::int64_t stride, std::int64_t taps, std::int64_t pad)
      : run(run),
        stride(stride),
        first(-ceil_div(pad, run)),
        count(((run - 1) * stride + taps - 1 - pad + run * -first) / run + 1) {}
};

Reach reach_of(const Graph& graph, const Node& node) {
  return {elements_of_vector(graph.type(node.inputs[0]).dtype), node.attributes.integers("strides")[1],
          graph.type(node.inputs[1]).dims()[3], node.attributes.integers("pads")[1]};
}

/// Of one channel, if there are few results or long windows.
bool pays_for_one_channel(const Dims& x, const Dims& filter, const Dims& y, std::int64_t run) {
  const bool is_few =
      filter[0] <= most_results && filter[2] * filter[3] > 1 && x[3] % run == 0 && y[3] % run == 0;
  return is_few || filter[3] >= long_in_runs * run;
}

/// Of two to four, if a vector of them, most of it zeros, and as many results would be multiplied at least twice as often.
bool pays_for_few_channels(const Dims& filter, const Dims& y, const Reach& reach) {
  constexpr std::int64_t least_results = 16, much_in_runs = 4;
  const bool fills = y[3] % reach.run == 0 || y[3] >= much_in_runs * reach.run;
  return fills && filter[2] * filter[3] > 1 &&
         2 * reach.count * filter[1] * filter[0] <= filter[3] * least_results;
}

bool is_taken_by_pixels(const Graph& graph, const Node& node, bool tf32) {
  if (node.op != Op::conv || node.attributes.integer("groups") != 1) return false;
  const TensorType& type = graph.type(node.inputs[0]);
  if (type.rank() != 4 || type.element_count() == 0 || !is_for_tensor_cores(type.dtype, tf32)) return false;
  const Dims x = type.dims(), filter = graph.type(node.inputs[1]).dims(),
             y = graph.type(node.outputs[0]).dims();
  const bool is_constant = std::ranges::all_of(node.inputs.begin() + 1, node.inputs.end(), [&](ValueId id) {
    return id == no_value || graph.is_constant(id);
  });
  const Reach reach = reach_of(graph, node);
  const bool is_near = node.attributes.integers("dilations")[1] == 1 && reach.stride <= 2;
  if (!is_constant || !is_near || x[1] > most_channels || y[3] <= 0) return false;
  return x[1] == 1 && reach.stride == 1 ? pays_for_one_channel(x, filter, y, reach.run)
                                        : pays_for_few_channels(filter, y, reach);
}

/// [F, C, ky, kx] -> [run * F, C * run, ky, count].
Tensor joined_filter(const Tensor& filter, const Reach& reach, std::int64_t pad) {
  const Dims& dims = filter.dims();
  const std::int64_t run = reach.run;
  Tensor result(filter.dtype(), {run * dims[0], dims[1] * run, dims[2], reach.count});
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const std::int64_t block = i % reach.count, line = i / reach.count % dims[2];
    const std::int64_t input = i / reach.count / dims[2] % (dims[1] * run),
                       output = i / reach.count / dims[2] / (dims[1] * run);
    const std::int64_t tap =
        run * (block + reach.first) + input % run - reach.stride * (output / dims[0]) + pad;
    const bool meets = tap >= 0 && tap < dims[3];
    const std::int64_t row = (output % dims[0] * dims[1] + input / run) * dims[2] + line;
    result.set_double(i, meets ? filter.as_double(row * dims[3] + tap) : 0.0);
  }
  return result;
}

Tensor repeated_bias(const Tensor& bias, std::int64_t times) {
  Tensor result(bias.dtype(), {times * bias.size()});
  for (std::int64_t i = 0; i < result.size(); ++i) result.set_double(i, bias.as_double(i % bias.size()));
  return result;
}

/// [N, C, H, W] -> [N, C * run, H, W / run], whose channels lie innermost.
ValueId add_vectors(Graph& graph, ValueId image, std::int64_t run) {
  const Dims dims = graph.type(image).dims();
  const std::int64_t lines = dims[2], vectors = dims[3] / run;
  ValueId rows = add_reshape(graph, image, {dims[0], dims[1], lines, vectors, run});
  if (dims[1] > 1) rows = add_transpose(graph, rows, {0, 2, 3, 1, 4});
  rows = add_reshape(graph, rows, {dims[0], lines, vectors, dims[1] * run});
  return add_transpose(graph, rows, {0, 3, 1, 2});
}

bool join_runs(GraphRewriter& rewriter, const Node& node, bool tf32) {
  const Graph& source = rewriter.source();
  if (!is_taken_by_pixels(source, node, tf32)) return false;
  Graph& graph = rewriter.graph();
  const Dims x = source.type(node.inputs[0]).dims(), y = source.type(node.outputs[0]).dims();
  const Tensor& filter = *source.value(node.inputs[1]).constant;
  const Dims& pads = node.attributes.integers("pads");
  const Reach reach = reach_of(source, node);
  const std::int64_t left = -reach.first * reach.run;
  const std::int64_t runs = ceil_div(y[3], reach.run);
  const std::int64_t right = ((runs - 1) * reach.stride + reach.count) * reach.run - left - x[3];
  if (right < 0) return false;
  // Around an image of one channel, so that no window leaves it and those of a line are one. Few channels are moved once, by no pad.
  const bool pads_itself = x[1] > 1 && x[3] % reach.run == 0;
  ValueId image = rewriter.mapped(node.inputs[0]);
  if (!pads_itself)
    image = graph.add(Op::pad, {image},
                      {{"low", Dims{0, 0, pads[0], left}}, {"high", Dims{0, 0, pads[2], right}}});
  std::vector<ValueId> inputs = {add_vectors(graph, image, reach.run),
                                 graph.add_constant(joined_filter(filter, reach, pads[1]))};
  if (node.inputs.size() > 2 && node.inputs[2] != no_value)
    inputs.push_back(graph.add_constant(repeated_bias(*source.value(node.inputs[2]).constant, reach.run)));
  Attributes attributes = node.attributes;
  attributes.set("pads",
                 pads_itself ? Dims{pads[0], left / reach.run, pads[2], right / reach.run} : Dims(4, 0));
  const ValueId joined = graph.add(Op::conv, inputs, attributes, node.name);
  ValueId pixels =
      add_reshape(graph, add_transpose(graph, joined, {0, 2, 3, 1}), {y[0], y[2], runs * reach.run, y[1]});
  if (y[3] % reach.run != 0) pixels = add_slice_along(graph, pixels, 2, 0, y[3]);
  rewriter.set(node.outputs[0], add_transpose(graph, pixels, {0, 3, 1, 2}));
  return true;
}

}  // namespace

Graph join_pixels(const Graph& graph, bool tf32) {
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return join_runs(rewriter, node, tf32); });
}

}  // namespace sylvite
