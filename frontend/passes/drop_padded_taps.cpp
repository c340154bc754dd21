// conv(x, w) with constant w, where the first or last lines or columns of w meet nothing but padding, wherever the window
// stands: they are cut off, and the padding with them. A window of 3x3 with dilation 36 on 28x28 pixels has one tap that counts.
// At sizes that differ a filter is to be one of few: single channels, which lose little by it, keep theirs, and a long one is cut
// to a power of two of taps.

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

/// How many of the first taps, or of the last ones, may go.
struct Ends {
  std::int64_t first = 0, last = 0;
};

Ends padded_ends(const Line& line) {
  const std::int64_t last_window = (line.windows - 1) * line.stride;
  Ends ends;
  while (line.taps - ends.first > 1 && line.low - ends.first * line.dilation >= line.dilation &&
         last_window < line.low - ends.first * line.dilation)
    ++ends.first;
  const std::int64_t low = line.low - ends.first * line.dilation;
  while (line.taps - ends.first - ends.last > 1 && line.high - ends.last * line.dilation >= line.dilation &&
         (line.taps - ends.first - ends.last - 1) * line.dilation - low >= line.extent)
    ++ends.last;
  return ends;
}

/// Of a long filter only as many that a power of two is left, and from both ends alike, so that sizes near each other keep the same.
Ends few_forms(const Line& line, const Ends& most) {
  constexpr std::int64_t few_taps = 8;
  const std::int64_t left = line.taps - most.first - most.last;
  if (left <= few_taps) return most;
  const auto kept = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(left)));
  const std::int64_t dropped = std::max<std::int64_t>(line.taps - kept, 0);
  const std::int64_t first =
      std::clamp(dropped / 2, std::max<std::int64_t>(dropped - most.last, 0), std::min(dropped, most.first));
  return {first, dropped - first};
}

void drop_taps(Line& line, bool open_sizes) {
  const Ends most = padded_ends(line);
  const Ends ends = open_sizes ? few_forms(line, most) : most;
  line.first = ends.first;
  line.taps -= ends.first + ends.last;
  line.low -= ends.first * line.dilation;
  line.high -= ends.last * line.dilation;
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
    drop_taps(line, open_sizes);
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
