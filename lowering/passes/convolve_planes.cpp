// Before: y [N, F, L'] = conv(x [N, C, L], W [F, C, k])
// After:  y = reshape(conv(reshape(x, [N, C, 1, L]), W [F, C, 1, k]))
// and, where kernels take no volumes with their channels innermost,
// Before: y [N, F, D', H', W'] = conv(x [N, C, D, H, W], W [F, C, k, ky, kx])
// After:  frames [N*D, C, H, W] = reshape(transpose(x)); those that the window meets at each place of its depth
//         stand side by side as channels, [N*D', k*C, H, W]; a 2-D convolution folds them, with W [F, k*C, ky, kx].
// Pointwise work, concats and slices of channels between such convolutions are of planes, so that reshapes and transposes
// cancel; so are slices and gathers of a line's places, as interpolation between them is.

#include <algorithm>
#include <map>
#include <optional>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

Dims frames_first() {
  return {0, 2, 1, 3, 4};
}

/// The extents of a value's planes: a line of height 1, or the frames as so many images.
Dims plane_dims(const Dims& dims) {
  if (dims.size() == 3) return {dims[0], dims[1], 1, dims[2]};
  return {dims[0] * dims[2], dims[1], dims[3], dims[4]};
}

ValueId add_planes(Graph& graph, ValueId id) {
  const Dims dims = graph.type(id).dims();
  return add_reshape(graph, dims.size() == 5 ? add_transpose(graph, id, frames_first()) : id,
                     plane_dims(dims));
}

/// The value of `dims` whose planes are these.
ValueId add_whole(Graph& graph, ValueId planes, const Dims& dims) {
  if (dims.size() == 3) return add_reshape(graph, planes, dims);
  const ValueId frames = add_reshape(graph, planes, {dims[0], dims[2], dims[1], dims[3], dims[4]});
  return add_transpose(graph, frames, frames_first());
}

/// [F, C, k, ky, kx] -> [F, k*C, ky, kx]; [F, C, k] -> [F, C, 1, k].
Tensor plane_filter(const Tensor& filter) {
  const Dims& dims = filter.dims();
  if (dims.size() == 3) return filter.reshaped({dims[0], dims[1], 1, dims[2]});
  Tensor result(filter.dtype(), {dims[0], dims[2] * dims[1], dims[3], dims[4]});
  const std::int64_t window = dims[3] * dims[4];
  for (std::int64_t i = 0; i < filter.size(); ++i) {
    const std::int64_t at = i % window, tap = i / window % dims[2];
    const std::int64_t channel = i / window / dims[2] % dims[1], output = i / window / dims[2] / dims[1];
    result.set_double(((output * dims[2] + tap) * dims[1] + channel) * window + at, filter.as_double(i));
  }
  return result;
}

bool is_taken_by_planes(const Graph& graph, const Node& node, bool innermost) {
  if (node.op != Op::conv) return false;
  const TensorType& x = graph.type(node.inputs[0]);
  if (innermost && x.rank() != 3) return false;
  const bool floats = x.dtype == DType::f32 || x.dtype == DType::bf16 || x.dtype == DType::f16;
  if (!floats || graph.type(node.outputs[0]).element_count() == 0 || x.element_count() == 0) return false;
  const Dims filter = graph.type(node.inputs[1]).dims();
  // The channels of a group would not lie together.
  return x.rank() == 3 || (x.rank() == 5 && (node.attributes.integer("groups") == 1 || filter[2] == 1));
}

/// Attributes of the convolution of planes: those of the last two dims.
Attributes plane_attributes(const Node& node, bool is_line) {
  const Dims &strides = node.attributes.integers("strides"),
             &dilations = node.attributes.integers("dilations"), &pads = node.attributes.integers("pads");
  Attributes result = node.attributes;
  result.set("strides", is_line ? Dims{1, strides[0]} : Dims{strides[1], strides[2]});
  result.set("dilations", is_line ? Dims{1, dilations[0]} : Dims{dilations[1], dilations[2]});
  result.set("pads", is_line ? Dims{0, pads[0], 0, pads[1]} : Dims{pads[1], pads[2], pads[4], pads[5]});
  return result;
}

class PlaneConvolver {
 public:
  explicit PlaneConvolver(bool innermost) : innermost_(innermost) {}

  bool rewrite(GraphRewriter& rewriter, const Node& node) {
    std::optional<ValueId> planes;
    if (is_taken_by_planes(rewriter.source(), node, innermost_)) planes = convolve(rewriter, node);
    if (has_trait(node.op, OpTrait::pointwise) && node.outputs.size() == 1) planes = work(rewriter, node);
    if (node.op == Op::concat) planes = join(rewriter, node);
    if (node.op == Op::slice) planes = part(rewriter, node);
    if (node.op == Op::gather) planes = pick(rewriter, node);
    if (!planes) return false;
    const ValueId out = node.outputs[0];
    rewriter.graph().rename(*planes, rewriter.source().value(out).name);
    planes_[out] = *planes;
    rewriter.set(out, add_whole(rewriter.graph(), *planes, rewriter.source().type(out).dims()));
    return true;
  }

 private:
  ValueId planes_of(GraphRewriter& rewriter, ValueId id) {
    if (const auto found = planes_.find(id); found != planes_.end()) return found->second;
    return planes_[id] = add_planes(rewriter.graph(), rewriter.mapped(id));
  }

  ValueId convolve(GraphRewriter& rewriter, const Node& node) {
    Graph& graph = rewriter.graph();
    const bool is_line = rewriter.source().type(node.inputs[0]).rank() == 3;
    const ValueId planes = planes_of(rewriter, node.inputs[0]);
    std::vector<ValueId> inputs = {is_line ? planes : window_frames(rewriter, node, planes),
                                   filter_of_planes(rewriter, node.inputs[1])};
    for (std::size_t i = 2; i < node.inputs.size(); ++i) inputs.push_back(rewriter.mapped(node.inputs[i]));
    return graph.add(Op::conv, inputs, plane_attributes(node, is_line), node.name);
  }

  static ValueId filter_of_planes(GraphRewriter& rewriter, ValueId id) {
    Graph& graph = rewriter.graph();
    const Value& filter = rewriter.source().value(id);
    if (filter.constant) return graph.add_constant(plane_filter(*filter.constant));
    const Dims dims = filter.type.dims();
    if (dims.size() == 3) return add_reshape(graph, rewriter.mapped(id), plane_dims(dims));
    const ValueId taps_first = add_transpose(graph, rewriter.mapped(id), frames_first());
    return add_reshape(graph, taps_first, {dims[0], dims[2] * dims[1], dims[3], dims[4]});
  }

  /// For every frame of the result the frames of x that the window meets, as channels: [N*D', k*C, H, W].
  /// Frames move whole: their pixels are one dim.
  static ValueId window_frames(GraphRewriter& rewriter, const Node& node, ValueId planes) {
    Graph& graph = rewriter.graph();
    const Dims x = rewriter.source().type(node.inputs[0]).dims();
    const std::int64_t frames = rewriter.source().type(node.outputs[0]).dims()[2];
    const std::int64_t taps = rewriter.source().type(node.inputs[1]).dims()[2];
    const std::int64_t stride = node.attributes.integers("strides")[0];
    const std::int64_t dilation = node.attributes.integers("dilations")[0];
    const Dims& pads = node.attributes.integers("pads");
    if (taps == 1 && stride == 1 && pads[0] == 0 && pads[3] == 0) return planes;
    const std::int64_t channels = x[1], pixels = x[3] * x[4];
    const Dims each = {x[0], x[2], channels, pixels};
    ValueId all = add_reshape(graph, planes, each);
    if (pads[0] != 0 || pads[3] != 0)
      all = graph.add(Op::pad, {all}, {{"low", Dims{0, pads[0], 0, 0}}, {"high", Dims{0, pads[3], 0, 0}}});
    Dims sizes = each;
    sizes[1] = frames;
    std::vector<ValueId> met;
    met.reserve(static_cast<std::size_t>(taps));
    for (std::int64_t tap = 0; tap < taps; ++tap)
      met.push_back(add_slice(graph, all, {0, tap * dilation, 0, 0}, sizes, {1, stride, 1, 1}));
    const ValueId together =
        met.size() == 1 ? met[0] : graph.add(Op::concat, met, {{"axis", std::int64_t{2}}});
    return add_reshape(graph, together, {x[0] * frames, taps * channels, x[3], x[4]});
  }

  /// Pointwise work on planes, where some whole operand has them already: a small one may be broadcast to any rank.
  std::optional<ValueId> work(GraphRewriter& rewriter, const Node& node) {
    const Graph& source = rewriter.source();
    const Dims dims = source.type(node.outputs[0]).dims();
    const bool starts = std::ranges::any_of(
        node.inputs, [&](ValueId id) { return planes_.contains(id) && source.type(id).dims() == dims; });
    if (!starts || !std::ranges::all_of(node.inputs, [&](ValueId id) { return fits(source, id, dims); }))
      return std::nullopt;
    std::vector<ValueId> inputs;
    inputs.reserve(node.inputs.size());
    for (const ValueId id : node.inputs) inputs.push_back(operand(rewriter, id, dims));
    return rewriter.graph().add(node.op, inputs, node.attributes, node.name);
  }

  /// Channels of planes side by side.
  [[nodiscard]] std::optional<ValueId> join(GraphRewriter& rewriter, const Node& node) const {
    if (node.attributes.integer("axis") != 1) return std::nullopt;
    std::vector<ValueId> planes;
    for (const ValueId id : node.inputs) {
      const auto found = planes_.find(id);
      if (found == planes_.end()) return std::nullopt;
      planes.push_back(found->second);
    }
    return rewriter.graph().add(Op::concat, planes, node.attributes, node.name);
  }

  /// Some channels of planes, or places of lines, one at least.
  [[nodiscard]] std::optional<ValueId> part(GraphRewriter& rewriter, const Node& node) const {
    const auto found = planes_.find(node.inputs[0]);
    if (found == planes_.end()) return std::nullopt;
    const Dims whole = rewriter.source().type(node.inputs[0]).dims();
    const Dims &starts = node.attributes.integers("starts"), &steps = node.attributes.integers("steps"),
               &sizes = node.attributes.integers("sizes");
    const bool is_line = whole.size() == 3;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const bool may_be_cut = i == 1 || (is_line && i == 2);
      if (sizes[i] == 0 || (!may_be_cut && (sizes[i] != whole[i] || starts[i] != 0 || steps[i] != 1)))
        return std::nullopt;
    }
    const Dims first = {0, starts[1], 0, is_line ? starts[2] : 0},
               step = {1, steps[1], 1, is_line ? steps[2] : 1};
    return add_slice(rewriter.graph(), found->second, first, plane_dims(sizes), step);
  }

  /// Places of lines.
  [[nodiscard]] std::optional<ValueId> pick(GraphRewriter& rewriter, const Node& node) const {
    const auto found = planes_.find(node.inputs[0]);
    const Graph& source = rewriter.source();
    if (found == planes_.end() || source.type(node.inputs[0]).rank() != 3 ||
        node.attributes.integer("axis") != 2 || source.type(node.inputs[1]).rank() != 1)
      return std::nullopt;
    return rewriter.graph().add(Op::gather, {found->second, rewriter.mapped(node.inputs[1])},
                                {{"axis", std::int64_t{3}}}, node.name);
  }

  /// Whole, one number, or one for each channel or each place of a line.
  [[nodiscard]] bool fits(const Graph& source, ValueId id, const Dims& dims) const {
    if (id == no_value) return false;
    if (source.type(id).dims() == dims) return planes_.contains(id) || !source.is_constant(id);
    return source.type(id).element_count() == 1 || is_by_channel(source.type(id), dims) ||
           is_by_place(source.type(id), dims);
  }

  static bool is_by_place(const TensorType& own, const Dims& dims) {
    const Dims extents = own.dims();
    return dims.size() == 3 && !extents.empty() && extents.back() == dims[2] &&
           own.element_count() == dims[2];
  }

  static bool is_by_channel(const TensorType& own, const Dims& dims) {
    const Dims extents = own.dims();
    if (extents.size() + 1 < dims.size()) return false;
    const std::size_t channel = extents.size() == dims.size() ? 1 : 0;
    return extents[channel] == dims[1] && own.element_count() == dims[1];
  }

  ValueId operand(GraphRewriter& rewriter, ValueId id, const Dims& dims) {
    const TensorType& type = rewriter.source().type(id);
    if (type.dims() == dims) return planes_of(rewriter, id);
    const std::int64_t count = type.element_count();
    const Dims to = count == 1                  ? Dims{}
                    : is_by_channel(type, dims) ? Dims{1, count, 1, 1}
                                                : Dims{1, 1, 1, count};
    if (!rewriter.source().is_constant(id)) return add_reshape(rewriter.graph(), rewriter.mapped(id), to);
    return rewriter.graph().add_constant(rewriter.source().value(id).constant->reshaped(to));
  }

  bool innermost_;
  std::map<ValueId, ValueId> planes_;  ///< by value of the source
};

}  // namespace

Graph convolve_planes(const Graph& graph, bool innermost) {
  PlaneConvolver convolver(innermost);
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return convolver.rewrite(rewriter, node); });
}

}  // namespace sylvite
