// conv(x, w) with constant w, where the first or last lines or columns of w meet nothing but padding, wherever the window
// stands: they are cut off, and the padding with them. A window of 3x3 with dilation 36 on 28x28 pixels has one tap that counts.
// What single channels lose by it is little: at sizes that differ, they keep one filter for all.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "frontend/graph/rewrite.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

/// A convolution along one of its dims.
struct Line {
  std::int64_t extent, windows;  ///< of the image; places of the window
  std::int64_t taps, stride, dilation, low, high;
  std::int64_t first = 0;  ///< the tap that is now the first
};

void drop_taps(Line& line) {
  const std::int64_t last_window = (line.windows - 1) * line.stride;
  while (line.taps > 1 && line.low >= line.dilation && last_window < line.low) {
    line.low -= line.dilation;
    ++line.first;
    --line.taps;
  }
  while (line.taps > 1 && line.high >= line.dilation &&
         (line.taps - 1) * line.dilation - line.low >= line.extent) {
    line.high -= line.dilation;
    --line.taps;
  }
  if (line.taps == 1) line.dilation = 1;
}

/// Zeros of the padding times such elements are not zero. Those of f32 are looked at as integers, in vectors: an import at a
/// new size asks for all filters whose taps meet padding alone.
bool has_special_values(const Tensor& tensor) {
  if (tensor.dtype() == DType::f32) {
    constexpr std::uint32_t magnitude = 0x7fffffff, infinity = 0x7f800000;
    std::uint32_t largest = 0;
    for (const float element : tensor.view<float>())
      largest = std::max(largest, std::bit_cast<std::uint32_t>(element) & magnitude);
    return largest >= infinity;
  }
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    if (!std::isfinite(tensor.as_double(i))) return true;
  return false;
}

bool drop_taps(GraphRewriter& rewriter, const Node& node, bool open_sizes) {
  const Graph& source = rewriter.source();
  if (node.op != Op::conv || !source.is_constant(node.inputs[1])) return false;
  if (open_sizes && source.type(node.inputs[1]).dims().at(1) == 1) return false;
  const Dims x = source.type(node.inputs[0]).dims(), out = source.type(node.outputs[0]).dims();
  if (source.type(node.inputs[0]).element_count() == 0 || source.type(node.outputs[0]).element_count() == 0)
    return false;
  Dims sizes = source.type(node.inputs[1]).dims(), starts(sizes.size(), 0);
  Dims dilations = node.attributes.integers("dilations"), pads = node.attributes.integers("pads");
  const std::size_t rank = dilations.size();
  bool drops = false;
  for (std::size_t d = 0; d < rank; ++d) {
    Line line{x[d + 2],     out[d + 2], sizes[d + 2],  node.attributes.integers("strides")[d],
              dilations[d], pads[d],    pads[d + rank]};
    drop_taps(line);
    drops = drops || line.taps < sizes[d + 2];
    starts[d + 2] = line.first, sizes[d + 2] = line.taps, dilations[d] = line.dilation;
    pads[d] = line.low, pads[d + rank] = line.high;
  }
  if (!drops || has_special_values(*source.value(node.inputs[1]).constant)) return false;
  std::vector<ValueId> inputs = rewriter.mapped(node.inputs);
  inputs[1] = rewriter.graph().add(Op::slice, {inputs[1]},
                                   {{"starts", starts}, {"sizes", sizes}, {"steps", Dims(sizes.size(), 1)}});
  Attributes attributes = node.attributes;
  attributes.set("dilations", dilations);
  attributes.set("pads", pads);
  rewriter.replace(node, Op::conv, std::move(inputs), std::move(attributes));
  return true;
}

}  // namespace

Graph drop_padded_taps(const Graph& graph, bool open_sizes) {
  return rewrite_nodes(graph, [open_sizes](GraphRewriter& rewriter, const Node& node) {
    return drop_taps(rewriter, node, open_sizes);
  });
}

}  // namespace sylvite
