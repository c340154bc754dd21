// Before: y = relu(conv(x, W))                               58 channels, 116 bytes a pixel
// After:  y = slice(relu(conv(x, W with six more filters)))  64 channels, of which six are zero
// Copies to and from tensor cores move 16 bytes. Convolutions, pointwise work, pooling and concats hand the wide value on, and
// only who needs the channels alone gets a slice. What is mostly zeros, as one channel of eight, is handed on to convolutions alone.

#include <algorithm>
#include <optional>

#include "base/rounding.h"
#include "frontend/graph/copy.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

class Widener {
 public:
  Widener(const Graph& source, bool tf32)
      : source_(source),
        tf32_(tf32),
        images_(innermost_images(source, tf32)),
        feeds_(read_by_convolutions(source)),
        made_(source),
        wide_(source.values().size(), no_value) {
    made_.add_inputs();
  }

  Graph run() {
    for (const Node& node : source_.nodes())
      if (!add_wide(node)) add_narrow(node);
    std::vector<ValueId> outputs;
    outputs.reserve(source_.outputs.size());
    for (const ValueId output : source_.outputs) outputs.push_back(narrow(output));
    return made_.finish(std::move(outputs));
  }

 private:
  /// Channels that fill vectors of 16 bytes, or 0 for what is no image for tensor cores or has such a number already.
  [[nodiscard]] std::int64_t wide_channels(ValueId id) const {
    const TensorType& type = source_.type(id);
    if (!is_for_tensor_cores(type.dtype, tf32_) || !is_image(type) || type.element_count() == 0) return 0;
    const std::int64_t unit = elements_of_vector(type.dtype);
    const std::int64_t channels = type.dims()[1], whole = round_up(channels, unit);
    return whole == channels ? 0 : whole;
  }

  [[nodiscard]] static Dims with_channels(Dims dims, std::int64_t channels) {
    dims.at(1) = channels;
    return dims;
  }

  [[nodiscard]] bool is_wide(ValueId id) const { return id != no_value && wide_[id] != no_value; }
  /// Its channels in its wide form: of the type that it had when it was widened.
  [[nodiscard]] std::int64_t width_of(ValueId id) { return made_.graph().type(wide_[id]).dims()[1]; }
  [[nodiscard]] bool is_whole(ValueId id, const Node& reader) const {
    return is_wide(id) && source_.type(id).dims()[1] == source_.type(reader.outputs[0]).dims()[1];
  }

  /// Channels of a node's wide result: those of its wide inputs; nullopt where these have other numbers of them.
  std::optional<std::int64_t> width_for(const Node& node) {
    std::optional<std::int64_t> width;
    for (const ValueId id : node.inputs) {
      if (!is_whole(id, node)) continue;
      if (width && *width != width_of(id)) return std::nullopt;
      width = width_of(id);
    }
    return width ? width : wide_channels(node.outputs[0]);
  }

  ValueId narrow(ValueId id) {
    if (id == no_value || made_.is_mapped(id) || source_.is_constant(id)) return made_.mapped(id);
    const Dims dims = source_.type(id).dims();
    made_.set(id, made_.graph().add(
                      Op::slice, {wide_[id]},
                      {{"starts", Dims(dims.size(), 0)}, {"sizes", dims}, {"steps", Dims(dims.size(), 1)}}));
    return made_.mapped(id);
  }

  void add_narrow(const Node& node) {
    std::vector<ValueId> inputs;
    inputs.reserve(node.inputs.size());
    for (const ValueId input : node.inputs) inputs.push_back(narrow(input));
    const std::vector<ValueId> outputs = made_.add_copy(node, std::move(inputs));
    for (std::size_t i = 0; i < outputs.size(); ++i) made_.set(node.outputs[i], outputs[i]);
  }

  bool add_wide(const Node& node) {
    if (node.outputs.size() != 1 || node.inputs.empty()) return false;
    std::optional<ValueId> now;
    if (node.op == Op::conv) return convolve(node);
    if (node.op == Op::slice && is_wide(node.inputs[0])) {
      made_.set(node.outputs[0], follow(node));
      return true;
    }
    if (wide_channels(node.outputs[0]) == 0) return false;
    if (has_trait(node.op, OpTrait::pointwise)) now = work(node);
    if (leaves_channels(source_, node) && is_wide(node.inputs[0]) && is_worth_following(node))
      now = follow(node);
    if (node.op == Op::concat && node.attributes.integer("axis") == 1) now = join(node);
    if (now) wide_[node.outputs[0]] = *now;
    return now.has_value();
  }

  [[nodiscard]] bool is_worth_following(const Node& node) {
    return feeds_[node.outputs[0]] || 2 * source_.type(node.inputs[0]).dims()[1] > width_of(node.inputs[0]);
  }

  ValueId follow(const Node& node) {
    std::vector<ValueId> inputs = {wide_[node.inputs[0]]};
    for (std::size_t i = 1; i < node.inputs.size(); ++i) inputs.push_back(narrow(node.inputs[i]));
    return made_.graph().add(node.op, std::move(inputs), node.attributes, node.name);
  }

  /// Of channels that stay finite, whatever finite they were.
  std::optional<ValueId> work(const Node& node) {
    if (!stays_finite(source_, node)) return std::nullopt;
    if (std::ranges::none_of(node.inputs, [&](ValueId id) { return is_wide(id); })) return std::nullopt;
    const std::optional<std::int64_t> channels = width_for(node);
    if (!channels) return std::nullopt;
    const std::size_t behind = source_.type(node.outputs[0]).shape.size() - 1;  // dims, with the channels
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) {
      if (id == no_value) return std::nullopt;
      const Dims dims = source_.type(id).dims();
      const bool varies = dims.size() >= behind && dims[dims.size() - behind] != 1;
      const bool takes = is_whole(id, node);
      if (varies && !takes && !source_.is_constant(id)) return std::nullopt;
      inputs.push_back(takes     ? wide_[id]
                       : !varies ? narrow(id)
                                 : constant(id, dims.size() - behind, *channels));
    }
    return made_.graph().add(node.op, std::move(inputs), node.attributes, node.name);
  }

  ValueId constant(ValueId id, std::size_t dim, std::int64_t extent) {
    const Tensor& tensor = *source_.value(id).constant;
    Dims dims = tensor.dims();
    dims.at(dim) = extent;
    return made_.graph().add_constant(with_zeros_behind(tensor, dims));
  }

  void pad(ValueId id, std::int64_t channels) {
    if (is_wide(id)) return;
    wide_[id] = add_zeros_behind(made_.graph(), narrow(id), with_channels(source_.type(id).dims(), channels));
  }

  /// Zeros stand behind all parts, as their last one.
  std::optional<ValueId> join(const Node& node) {
    const auto type = source_.type(node.outputs[0]);
    const std::int64_t channels = wide_channels(node.outputs[0]);
    if (std::ranges::none_of(node.inputs, [&](ValueId id) { return images_[id] || is_wide(id); }))
      return std::nullopt;
    std::vector<ValueId> inputs;
    inputs.reserve(node.inputs.size() + 1);
    for (const ValueId id : node.inputs) inputs.push_back(narrow(id));
    // A part that lies otherwise is copied anyway: with its zeros it may lie as the others.
    const ValueId last = node.inputs.back();
    const std::int64_t end = channels - type.dims()[1] + source_.type(last).dims()[1];
    if (!images_[last] && end % elements_of_vector(type.dtype) == 0) {
      inputs.back() =
          add_zeros_behind(made_.graph(), inputs.back(), with_channels(source_.type(last).dims(), end));
      return made_.graph().add(Op::concat, std::move(inputs), node.attributes, node.name);
    }
    const ValueId zero = made_.graph().add_constant(Tensor(type.dtype, {}));
    const Dims rest = with_channels(type.dims(), channels - type.dims()[1]);
    inputs.push_back(made_.graph().add(Op::broadcast_to, {zero}, {{"shape", rest}}));
    return made_.graph().add(Op::concat, std::move(inputs), node.attributes, node.name);
  }

  bool convolve(const Node& node) {
    const TensorType& filter = source_.type(node.inputs[1]);
    const std::int64_t groups = node.attributes.integer("groups");
    const std::int64_t channels = source_.type(node.inputs[0]).dims().at(1);
    const std::int64_t wide_in = wide_channels(node.inputs[0]), wide_out = wide_channels(node.outputs[0]);
    const bool has_bias = node.inputs.size() > 2 && node.inputs[2] != no_value;
    if (!source_.is_constant(node.inputs[1]) || (has_bias && !source_.is_constant(node.inputs[2])))
      return false;
    const bool depthwise = groups == channels && filter.dims()[0] == channels;
    constexpr std::int64_t few = 4;  // widen_few_channels has a better way
    if (wide_in != 0 && groups == 1 && channels > few) pad(node.inputs[0], wide_in);
    const bool takes = is_wide(node.inputs[0]);
    if (groups != 1 && !(depthwise && takes)) return false;
    if (!takes && wide_out == 0) return false;
    const std::int64_t outputs = wide_out == 0              ? filter.dims()[0]
                                 : depthwise && groups != 1 ? width_of(node.inputs[0])
                                                            : wide_out;
    std::vector<ValueId> inputs = {takes ? wide_[node.inputs[0]] : narrow(node.inputs[0])};
    Dims dims = filter.dims();
    dims[0] = outputs;
    if (groups == 1 && takes) dims[1] = width_of(node.inputs[0]);
    inputs.push_back(
        made_.graph().add_constant(with_zeros_behind(*source_.value(node.inputs[1]).constant, dims)));
    if (has_bias) inputs.push_back(constant(node.inputs[2], 0, outputs));
    Attributes attributes = node.attributes;
    if (depthwise && groups != 1) attributes.set("groups", outputs);
    const ValueId now = made_.graph().add(Op::conv, std::move(inputs), std::move(attributes), node.name);
    if (wide_out != 0)
      wide_[node.outputs[0]] = now;
    else
      made_.set(node.outputs[0], now);
    return true;
  }

  const Graph& source_;
  bool tf32_;
  IdMap<bool> images_;   ///< per source value
  IdMap<bool> feeds_;    ///< likewise: see read_by_convolutions
  GraphCopier made_;     ///< what stands for a value is its narrow form
  IdMap<ValueId> wide_;  ///< per source value: its wide form in the result, or no_value
};

}  // namespace

Graph widen_channels(const Graph& graph, bool tf32) {
  return Widener(graph, tf32).run();
}

}  // namespace sylvite
