#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// Of taps that lie apart each has channels of zeros of its own: one or two channels are multiplied as fast without.
constexpr std::int64_t least_apart = 3;

bool lies_together(const Node& conv) {
  return std::ranges::max(conv.attributes.integers("dilations")) == 1;
}

bool is_taken_widened(const Graph& graph, const Node& node, bool tf32) {
  if (node.op != Op::conv) return false;
  const TensorType& x = graph.type(node.inputs[0]);
  if (!is_image(x)) return false;
  return is_for_tensor_cores(x.dtype, tf32) && x.dims()[1] < elements_of_vector(x.dtype) &&
         x.element_count() > 0 && node.attributes.integer("groups") == 1 &&
         (lies_together(node) || x.dims()[1] >= least_apart);
}

/// Where a filter of few channels meets its image: zeros around it, so that no window leaves it.
struct Surroundings {
  Dims low, high;
  bool holds = true;  ///< there are as many windows as before
};

Surroundings surroundings(const Dims& x, const Dims& filter, const Dims& out, const Attributes& attributes) {
  const Dims &strides = attributes.integers("strides"), &pads = attributes.integers("pads");
  const Dims& dilations = attributes.integers("dilations");
  Surroundings around{Dims(x.size(), 0), Dims(x.size(), 0)};
  around.high[1] = filter[1] - x[1];
  for (std::size_t d = 2; d < x.size(); ++d) {
    const std::int64_t stride = strides[d - 2], window = (filter[d] - 1) * dilations[d - 2] + 1;
    const std::int64_t reach = (out[d] - 1) * stride + window;
    around.low[d] = pads[d - 2];
    around.high[d] = std::max<std::int64_t>(reach - pads[d - 2] - x[d], 0);
    // What is left behind the last window may be less than a step, or more.
    const std::int64_t extent = x[d] + around.low[d] + around.high[d];
    around.holds = around.holds && (extent - window) / stride + 1 == out[d];
  }
  return around;
}

bool widen(GraphRewriter& rewriter, const Node& node, bool tf32) {
  Graph& graph = rewriter.graph();
  if (!is_taken_widened(rewriter.source(), node, tf32)) return false;
  const std::int64_t run = elements_of_vector(rewriter.source().type(node.inputs[0]).dtype);
  const Dims x = rewriter.source().type(node.inputs[0]).dims();
  const std::optional<Tensor>& filter = rewriter.source().value(node.inputs[1]).constant;
  Dims wide = rewriter.source().type(node.inputs[1]).dims();
  // Neighbouring windows, too, are a multiple of 16 bytes apart, and so are taps that lie apart.
  const bool takes_half = x[1] <= run / 2 && node.attributes.integers("strides").back() % 2 == 0;
  wide[1] = lies_together(node) && takes_half ? run / 2 : run;
  while (wide[1] * wide.back() % run != 0) ++wide.back();
  const Surroundings around =
      surroundings(x, wide, rewriter.source().type(node.outputs[0]).dims(), node.attributes);
  if (!around.holds) return false;
  std::vector<ValueId> inputs = rewriter.mapped(node.inputs);
  inputs[0] = graph.add(Op::pad, {inputs[0]}, {{"low", around.low}, {"high", around.high}});
  inputs[1] = filter ? graph.add_constant(with_zeros_behind(*filter, wide))
                     : add_zeros_behind(graph, inputs[1], wide);
  Attributes attributes = node.attributes;
  attributes.set("pads", Dims(2 * (x.size() - 2), 0));
  rewriter.replace(node, Op::conv, std::move(inputs), std::move(attributes));
  return true;
}

}  // namespace

Graph widen_few_channels(const Graph& graph, bool tf32) {
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return widen(rewriter, node, tf32); });
}

}  // namespace sylvite
