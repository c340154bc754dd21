// Before: y [N, F, H', W'] = conv(x [N, 1, H, W], W [F, 1, ky, kx])   of few results or long windows, windows side by side
// After:  x [N, H, W/8, 8] has eight pixels as the channels of one, as has y [N, H', W'/8, 8*F], whose filter holds W eight
//         times, each a pixel further, with zeros around.
// Tensor cores take whole vectors of channels and many results at once: of one channel and few results they waste nearly all. In
// long windows the zeros are few beside the taps, however many results there are.

#include <algorithm>

#include "base/rounding.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_results = 32, long_in_runs = 4;

bool is_taken_by_pixels(const Graph& graph, const Node& node, bool tf32) {
  if (node.op != Op::conv) return false;
  const TensorType& x = graph.type(node.inputs[0]);
  if (x.rank() != 4 || x.element_count() == 0 || x.dims()[1] != 1 || !is_for_tensor_cores(x.dtype, tf32))
    return false;
  const Dims filter = graph.type(node.inputs[1]).dims(), y = graph.type(node.outputs[0]).dims();
  const std::int64_t run = elements_of_vector(x.dtype);
  const bool is_constant = std::ranges::all_of(node.inputs.begin() + 1, node.inputs.end(), [&](ValueId id) {
    return id == no_value || graph.is_constant(id);
  });
  const bool is_few =
      filter[0] <= most_results && filter[2] * filter[3] > 1 && x.dims()[3] % run == 0 && y[3] % run == 0;
  return is_constant && (is_few || filter[3] >= long_in_runs * run) && y[3] > 0 &&
         node.attributes.integers("strides")[1] == 1 && node.attributes.integers("dilations")[1] == 1;
}

/// Which vectors of pixels a window of a vector of results meets, from the one above it: [first, first + count).
struct Reach {
  std::int64_t run, first, count;

  Reach(std::int64_t run, std::int64_t taps, std::int64_t pad)
      : run(run), first(-ceil_div(pad, run)), count((run + taps - 2 - pad + run * -first) / run + 1) {}
};

/// [F, 1, ky, kx] -> [run * F, run, ky, count].
Tensor joined_filter(const Tensor& filter, const Reach& reach, std::int64_t pad) {
  const Dims& dims = filter.dims();
  const std::int64_t run = reach.run;
  Tensor result(filter.dtype(), {run * dims[0], run, dims[2], reach.count});
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const std::int64_t block = i % reach.count, line = i / reach.count % dims[2];
    const std::int64_t from = i / reach.count / dims[2] % run, output = i / reach.count / dims[2] / run;
    const std::int64_t tap = run * (block + reach.first) + from - output / dims[0] + pad;
    const bool meets = tap >= 0 && tap < dims[3];
    result.set_double(i, meets ? filter.as_double((output % dims[0] * dims[2] + line) * dims[3] + tap) : 0.0);
  }
  return result;
}

Tensor repeated_bias(const Tensor& bias, std::int64_t times) {
  Tensor result(bias.dtype(), {times * bias.size()});
  for (std::int64_t i = 0; i < result.size(); ++i) result.set_double(i, bias.as_double(i % bias.size()));
  return result;
}

bool join_runs(GraphRewriter& rewriter, const Node& node, bool tf32) {
  const Graph& source = rewriter.source();
  if (!is_taken_by_pixels(source, node, tf32)) return false;
  Graph& graph = rewriter.graph();
  const Dims x = source.type(node.inputs[0]).dims(), y = source.type(node.outputs[0]).dims();
  const Tensor& filter = *source.value(node.inputs[1]).constant;
  const Dims& pads = node.attributes.integers("pads");
  const Reach reach(elements_of_vector(source.type(node.inputs[0]).dtype), filter.dims()[3], pads[1]);
  const std::int64_t left = -reach.first * reach.run;
  const std::int64_t runs = ceil_div(y[3], reach.run);
  const std::int64_t right = (runs + reach.count - 1) * reach.run - left - x[3];
  if (right < 0) return false;
  // Around the image, so that no window leaves it and those of a line are one.
  const ValueId padded =
      graph.add(Op::pad, {rewriter.mapped(node.inputs[0])},
                {{"low", Dims{0, 0, pads[0], left}}, {"high", Dims{0, 0, pads[2], right}}});
  const Dims rows = {x[0], x[2] + pads[0] + pads[2], (x[3] + left + right) / reach.run, reach.run};
  std::vector<ValueId> inputs = {add_transpose(graph, add_reshape(graph, padded, rows), {0, 3, 1, 2}),
                                 graph.add_constant(joined_filter(filter, reach, pads[1]))};
  if (node.inputs.size() > 2 && node.inputs[2] != no_value)
    inputs.push_back(graph.add_constant(repeated_bias(*source.value(node.inputs[2]).constant, reach.run)));
  Attributes attributes = node.attributes;
  attributes.set("pads", Dims(4, 0));
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
