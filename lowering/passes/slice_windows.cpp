// Before: y = avg_pool(x, window [5, 1, 1])     x [images, 1, channels, lines, columns], as norms over neighbouring channels have it
// After:  y = (a + b + c + d + e) / 5           of slices of x, each a channel further
// Or the largest of these. Poolings take vectors of channels; of one channel they read number by number. Slices along an outer dim
// are read in vectors, and what is done ahead of the window and behind it is done with it.
//
// Before: y = avg_pool(pad(reshape(x)))         x [images, channels, lines, columns] of 16 bits, padded along the channels
// After:  y = reshape(conv(x, ones in a band) / 5)
// So images whose channels lie innermost stay as they lie, and tensor cores add up.

#include <algorithm>
#include <utility>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_slices = 8;

bool are_all(const Dims& dims, std::int64_t number) {
  return std::ranges::all_of(dims, [number](std::int64_t n) { return n == number; });
}

/// The one dim of pixels, not the innermost, along which windows of one channel go, step by step; 0 where there is none.
std::size_t dim_of_window(const TensorType& type, const Attributes& pool) {
  const Dims& kernel = pool.integers("kernel");
  const bool goes_by_one = are_all(pool.integers("strides"), 1) && are_all(pool.integers("dilations"), 1) &&
                           are_all(pool.integers("pads"), 0);
  if (!type.is_known() || !is_float(type.dtype) || type.dtype == DType::f64 ||
      type.layout.channel_block != 0 || type.dims()[1] != 1 || !goes_by_one)
    return 0;
  const auto wide = std::ranges::find_if(kernel, [](std::int64_t extent) { return extent > 1; });
  if (wide == kernel.end() || wide + 1 == kernel.end() || *wide > most_slices) return 0;
  return are_all(Dims(wide + 1, kernel.end()), 1) ? 2 + static_cast<std::size_t>(wide - kernel.begin()) : 0;
}

/// An image, and the zeros that are put ahead of its channels and behind them where it is pooled along these.
struct Channels {
  ValueId image = no_value;
  std::int64_t low = 0;
};

/// no_value where `x`, pooled along `dim`, is no such image.
Channels channels_of(const Graph& graph, ValueId x, std::size_t dim) {
  constexpr std::int64_t most_channels = 512;
  const Node* pad = producer_if(graph, x, Op::pad);
  if (pad == nullptr || dim != 2) return {};
  if (pad->inputs.size() > 1 && pad->inputs[1] != no_value && scalar_constant(graph, pad->inputs[1]) != 0)
    return {};
  const Node* reshape = producer_if(graph, pad->inputs[0], Op::reshape);
  if (reshape == nullptr) return {};
  const TensorType& image = graph.type(reshape->inputs[0]);
  Dims dims = image.dims(), low = pad->attributes.integers("low"), high = pad->attributes.integers("high");
  if (dims.size() != 4 || dims[1] > most_channels || !may_lie_innermost(image, false)) return {};
  dims.insert(dims.begin() + 1, 1);
  const std::int64_t ahead = std::exchange(low.at(2), 0);
  high.at(2) = 0;
  const bool is_of_channels = graph.type(pad->inputs[0]).dims() == dims && are_all(low, 0) &&
                              are_all(high, 0) && are_all(pad->attributes.integers("interior"), 0);
  return is_of_channels ? Channels{reshape->inputs[0], ahead} : Channels{};
}

/// Ones where `taps` channels from `low` ahead of a result's own are.
Tensor band(DType dtype, std::int64_t results, std::int64_t channels, std::int64_t taps, std::int64_t low) {
  Tensor filter(dtype, {results, channels, 1, 1});
  for (std::int64_t i = 0; i < results; ++i)
    for (std::int64_t c = std::max<std::int64_t>(0, i - low); c < std::min(channels, i - low + taps); ++c)
      filter.set_double(i * channels + c, 1);
  return filter;
}

ValueId add_sums(Graph& graph, const Channels& of, std::int64_t results, std::int64_t taps) {
  const TensorType& image = graph.type(of.image);
  const ValueId filter = graph.add_constant(band(image.dtype, results, image.dims()[1], taps, of.low));
  return graph.add(Op::conv, {of.image, filter},
                   {{"strides", Dims{1, 1}},
                    {"pads", Dims{0, 0, 0, 0}},
                    {"dilations", Dims{1, 1}},
                    {"groups", std::int64_t{1}}});
}

ValueId add_slices(Graph& graph, ValueId x, std::size_t dim, std::int64_t places, Op join) {
  ValueId all = no_value;
  for (std::int64_t i = 0; i <= graph.type(x).dims()[dim] - places; ++i) {
    const ValueId tap = add_cast(graph, add_slice_along(graph, x, dim, i, places), DType::f32);
    all = all == no_value ? tap : graph.add(join, {all, tap});
  }
  return all;
}

bool slice_window(GraphRewriter& rewriter, const Node& node, bool innermost) {
  if (node.op != Op::avg_pool && node.op != Op::max_pool) return false;
  const TensorType& type = rewriter.source().type(node.inputs[0]);
  const std::size_t dim = dim_of_window(type, node.attributes);
  if (dim == 0) return false;
  Graph& graph = rewriter.graph();
  const ValueId x = rewriter.mapped(node.inputs[0]);
  const bool is_mean = node.op == Op::avg_pool;
  const Dims made = rewriter.source().type(node.outputs[0]).dims();
  const std::int64_t taps = type.dims()[dim] - made[dim] + 1;
  const Channels channels = is_mean && innermost ? channels_of(graph, x, dim) : Channels{};
  ValueId all = channels.image != no_value
                    ? add_sums(graph, channels, made[dim], taps)
                    : add_slices(graph, x, dim, made[dim], is_mean ? Op::add : Op::maximum);
  if (is_mean) {
    Tensor share(DType::f32, {});
    share.set_double(0, 1.0 / static_cast<double>(taps));
    all = graph.add(Op::mul, {all, graph.add_constant(share)}, {}, node.name);
  }
  rewriter.set(node.outputs[0], add_reshape(graph, add_cast(graph, all, type.dtype), made));
  return true;
}

}  // namespace

Graph slice_windows(const Graph& graph, bool innermost) {
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    return slice_window(rewriter, node, innermost);
  });
}

}  // namespace sylvite
