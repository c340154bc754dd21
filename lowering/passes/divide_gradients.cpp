// Before: y = filter_gradient(gradient, x)                       one 64 x 64 product of 400,000 pixels
// After:  y = reduce_sum(filter_gradient(gradient, x){parts=16}, parts)
// A GPU is full when a hundred tiles of a result are made at once. Where sizes are open, there are as many parts whatever the pixels:
// so gradients at many sizes are one kernel.

#include <algorithm>

#include "base/rounding.h"
#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// Parts for products on tensor cores, whose tiles of 128 x 128 are shared among up to eight multiprocessors.
std::int64_t parts_of_products(const Dims& result) {
  constexpr std::int64_t wanted_tiles = 16, tile = 128;
  const std::int64_t tiles = result[1] * ceil_div(result[2], tile) * ceil_div(result[3], tile);
  return ceil_div(wanted_tiles, tiles);
}

/// Parts for sums of each channel by itself, by blocks of threads for a few channels.
std::int64_t parts_of_channels(const Dims& result) {
  constexpr std::int64_t wanted_blocks = 1056, channels = 32;
  return ceil_div(wanted_blocks, ceil_div(result[2], channels));
}

/// Parts for filters whose taps of a line are joined, by blocks of threads that have all of the result.
std::int64_t parts_of_lines(const Dims& result) {
  constexpr std::int64_t wanted_blocks = 264, outputs = 64;
  return ceil_div(wanted_blocks, ceil_div(result[2], outputs));
}

bool divide_gradient(GraphRewriter& rewriter, const Node& node, bool open_sizes) {
  if (node.op != Op::filter_gradient || node.attributes.integer("parts") != 1) return false;
  constexpr std::int64_t least_pixels = 512;
  const Dims gradient = rewriter.source().type(node.inputs[0]).dims();
  const Dims result = rewriter.source().type(node.outputs[0]).dims();
  const std::int64_t pixels = checked_product(gradient, "gradient") / std::max<std::int64_t>(gradient[1], 1);
  const bool is_depthwise = node.attributes.integer("groups") > 1;
  const bool is_joined = node.attributes.integer("joined") != 0;
  const std::int64_t wanted = is_depthwise ? parts_of_channels(result)
                              : is_joined  ? parts_of_lines(result)
                                           : parts_of_products(result);
  const std::int64_t parts = open_sizes ? wanted : std::min(wanted, pixels / least_pixels);
  if (parts <= 1) return false;
  Attributes attributes = node.attributes;
  attributes.set("parts", parts);
  Graph& graph = rewriter.graph();
  const ValueId sums =
      graph.add(Op::filter_gradient, rewriter.mapped(node.inputs), std::move(attributes), node.name);
  rewriter.set(node.outputs[0],
               graph.add(Op::reduce_sum, {sums}, {{"axes", Dims{0}}, {"keepdims", std::int64_t{1}}}));
  return true;
}

}  // namespace

Graph divide_gradients(const Graph& graph, const LoweringOptions& options) {
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    return divide_gradient(rewriter, node, options.open_sizes);
  });
}

}  // namespace sylvite
