#pragma once
// Convolution kernels: with their channels innermost, for tests of templates, and with them in blocks.

#include <string>

#include "lowering/plan/kernel.h"

namespace sylvite {

struct ConvSpec {
  std::int64_t images = 2, channels = 64, lines = 12, columns = 9, filters = 64;
  std::int64_t taps_y = 3, taps_x = 3, stride = 1, dilation = 1, groups = 1;
  Dims pads = {1, 1, 1, 1};
  std::int64_t frames = 0;  ///< of a volume; none: images
  std::int64_t taps_z = 3, stride_z = 1, dilation_z = 1;
  Dims pads_z = {1, 1};
  DType element = DType::bf16;
  /// none, relu, residual (with relu), scale (a number per channel), mask (by truth values), masked and hidden (residual, then
  /// a mask by truth values, and by what is positive); all with bias
  std::string epilogue = "relu";
  std::int64_t channels_beside = 0;  ///< so many on either side of those that it reads
  bool filter_is_weight = true;      ///< else it is a value with its channels innermost
};

namespace conv_kernels {

inline ValueId with_channels_last(Graph& body, ValueId id) {
  TensorType& type = body.value(id).type;
  type.layout.channel_block = static_cast<int>(type.dims()[1]);
  return id;
}

/// [first two, pixels...] with the dim of frames where the spec has one.
inline Dims with_frames(const ConvSpec& spec, Dims dims, std::int64_t frames) {
  if (spec.frames != 0) dims.insert(dims.end() - 2, frames);
  return dims;
}

inline Attributes attributes_of(const ConvSpec& spec) {
  Dims pads = spec.pads;
  if (spec.frames != 0) {
    pads.insert(pads.begin() + 2, spec.pads_z[1]);
    pads.insert(pads.begin(), spec.pads_z[0]);
  }
  return {{"strides", with_frames(spec, {spec.stride, spec.stride}, spec.stride_z)},
          {"pads", pads},
          {"dilations", with_frames(spec, {spec.dilation, spec.dilation}, spec.dilation_z)},
          {"groups", spec.groups}};
}

}  // namespace conv_kernels

namespace conv_kernels {

/// What is left of y by an epilogue's mask.
inline ValueId mask(Graph& body, ValueId y, const std::string& epilogue, std::vector<bool>& weights) {
  const bool is_truth = epilogue != "hidden";
  const TensorType type = body.type(y);
  weights.push_back(false);
  ValueId hides = body.add_input("m", make_type(is_truth ? DType::boolean : type.dtype, type.dims()));
  with_channels_last(body, hides);
  const ValueId zero = body.add_constant(Tensor(type.dtype, {}));
  if (!is_truth) hides = with_channels_last(body, body.add(Op::greater, {hides, zero}));
  return with_channels_last(body, body.add(Op::where, {hides, y, zero}));
}

}  // namespace conv_kernels

/// The bias and the scale are weights.
inline Kernel conv_kernel(const ConvSpec& spec) {
  using conv_kernels::with_channels_last;
  using conv_kernels::with_frames;
  Graph body;
  std::vector<bool> weights;
  const auto input = [&](const char* name, const Dims& dims, bool is_weight) {
    weights.push_back(is_weight);
    return body.add_input(name, make_type(spec.element, dims));
  };
  const Dims images = with_frames(spec, {spec.images, spec.channels, spec.lines, spec.columns}, spec.frames);
  Dims whole = images;
  whole[1] += 2 * spec.channels_beside;
  ValueId x = with_channels_last(body, input("x", whole, false));
  if (spec.channels_beside != 0) {
    Dims starts(whole.size(), 0);
    starts[1] = spec.channels_beside;
    x = with_channels_last(
        body,
        body.add(Op::slice, {x}, {{"starts", starts}, {"sizes", images}, {"steps", Dims(whole.size(), 1)}}));
  }
  const ValueId w = input(
      "w",
      with_frames(spec, {spec.filters, spec.channels / spec.groups, spec.taps_y, spec.taps_x}, spec.taps_z),
      spec.filter_is_weight);
  if (!spec.filter_is_weight) with_channels_last(body, w);
  const ValueId b = input("b", {spec.filters}, true);
  ValueId y = with_channels_last(body, body.add(Op::conv, {x, w, b}, conv_kernels::attributes_of(spec)));
  const auto then = [&](Op op, std::vector<ValueId> inputs) {
    y = with_channels_last(body, body.add(op, std::move(inputs)));
  };
  if (spec.epilogue == "scale")
    then(Op::mul,
         {y, with_channels_last(body, input("e", with_frames(spec, {1, spec.filters, 1, 1}, 1), true))});
  const bool hides = spec.epilogue == "masked" || spec.epilogue == "hidden";
  if (spec.epilogue == "residual" || hides)
    then(Op::add, {y, with_channels_last(body, input("e", body.type(y).dims(), false))});
  if (spec.epilogue == "mask" || hides) y = conv_kernels::mask(body, y, spec.epilogue, weights);
  if (spec.epilogue != "none") then(Op::relu, {y});
  body.outputs = {y};
  return make_kernel(body, std::move(weights));
}

/// conv(sigmoid(x), w), three by three, all channel-blocked: the input is computed in the same kernel.
inline Kernel conv_of_computed_input() {
  Graph body;
  TensorType type = make_type(DType::f32, {1, 32, 7, 7});
  type.layout = {16};
  const ValueId x = body.add_input("x", type);
  const ValueId weight = body.add_input("w", make_type(DType::f32, {16, 32, 3, 3}));
  const ValueId active = body.add(Op::sigmoid, {x});
  body.value(active).type.layout = {16};
  const ValueId out = body.add(Op::conv, {active, weight},
                               {{"strides", Dims{1, 1}},
                                {"dilations", Dims{1, 1}},
                                {"pads", Dims{1, 1, 1, 1}},
                                {"groups", std::int64_t{1}}});
  body.value(out).type.layout = {16};
  body.outputs = {out};
  return make_kernel(body, {false, true});
}

}  // namespace sylvite
