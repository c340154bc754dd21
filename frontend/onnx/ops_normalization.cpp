// Normalisations.

#include <algorithm>

#include "base/error.h"
#include "frontend/build/normalization.h"
#include "frontend/build/pooling.h"
#include "frontend/onnx/ops.h"

namespace sylvite {
namespace {

/// Normalises by the statistics of the batch, and moves the running ones towards them.
void batch_norm_training(ImportContext& c) {
  const Sym x = c.input(0);
  std::vector<std::int64_t> axes = all_axes(x.rank());
  axes.erase(axes.begin() + 1);
  const Sym mean = reduce_mean(x, axes);
  const Sym centered = x - mean;
  const Sym variance = reduce_mean(centered * centered, axes);
  const Sym normalized = centered * apply(Op::rsqrt, variance + c.real("epsilon", 1e-5));
  c.output(0, normalized * per_channel(c.input(1), x.rank()) + per_channel(c.input(2), x.rank()));
  const double momentum = c.real("momentum", 0.9);
  const auto moved = [&](Sym running, Sym now) {
    return running * momentum + reshape(now, running.dims()) * (1 - momentum);
  };
  c.output(1, moved(c.input(3), mean));
  c.output(2, moved(c.input(4), variance));
}

void batch_norm(ImportContext& c) {
  if (c.input(0).rank() < 2)
    throw ModelError("the input has rank {}, expected at least 2", c.input(0).rank());
  if (c.integer("spatial", 1) == 0)
    throw UnsupportedError("attribute spatial = 0: norms of each position alone are not supported");
  if (c.integer("training_mode", 0) != 0) return batch_norm_training(c);
  c.output(c.builder().add(Op::batch_norm, {c.input(0), c.input(1), c.input(2), c.input(3), c.input(4)},
                           {{"epsilon", c.real("epsilon", 1e-5)}}));
}

void layer_norm_op(ImportContext& c) {
  const Sym x = c.input(0);
  const int axis = normalize_axis(c.integer("axis", -1), x.rank());
  const double epsilon = c.real("epsilon", 1e-5);
  const Sym scale = c.input(1);
  const Sym bias = c.optional(2);
  if (!c.wants_output(1) && !c.wants_output(2)) return c.output(layer_norm(x, scale, bias, axis, epsilon));
  const Standardized s = standardize(x, axes_from(axis, x.rank()), epsilon);
  const Sym scaled = s.value * scale;
  c.output(0, bias ? scaled + bias : scaled);
  c.output(1, s.mean);
  c.output(2, s.inverse_deviation);
}

void rms_norm_op(ImportContext& c) {
  const Sym x = c.input(0);
  c.output(rms_norm(x, c.input(1), normalize_axis(c.integer("axis", -1), x.rank()), c.real("epsilon", 1e-5)));
}

void instance_norm(ImportContext& c) {
  const Sym x = c.input(0);
  const Sym value = standardized(x, 2, c.real("epsilon", 1e-5));
  c.output(value * per_channel(c.input(1), x.rank()) + per_channel(c.input(2), x.rank()));
}

void group_norm_op(ImportContext& c) {
  c.output(group_norm(c.input(0), c.input(1), c.input(2), c.required_integer("num_groups"),
                      c.real("epsilon", 1e-5)));
}

void mean_variance_norm(ImportContext& c) {
  const Sym x = c.input(0);
  const auto axes = c.has_attribute("axes") ? normalize_axes(c.integers("axes"), x.rank())
                                            : std::vector<std::int64_t>{0, 2, 3};
  const Sym centered = x - reduce_mean(x, axes);
  const Sym deviation = apply(Op::sqrt, reduce_mean(centered * centered, axes));
  c.output(centered / (deviation + 1e-9));
}

/// x / (bias + alpha / size * sum of squares over `size` neighbouring channels)^beta.
void local_response_norm(ImportContext& c) {
  const Sym x = c.input(0);
  const std::int64_t size = c.required_integer("size");
  constexpr std::int64_t most = 16'384;  // each result adds so many
  if (size < 1 || size > most) throw ModelError("size is {}; expected 1 to {}", size, most);
  if (x.rank() < 3) throw ModelError("the input has {} dims; expected 3 at least", x.rank());
  // Windows have three axes at most: more are one line of pixels.
  const Dims dims = x.dims();
  const std::int64_t pixels = checked_product(Dims(dims.begin() + 2, dims.end()), "pixels");
  const Sym image = x.rank() > 4 ? reshape(x, {dims[0], dims[1], pixels}) : x;
  const auto axes = static_cast<std::size_t>(image.rank() - 1);
  const Dims ones(axes, 1);
  MapWindow channels{ones, ones, ones, Dims(2 * axes, 0)};
  channels.kernel[0] = size;
  channels.pads[0] = (size - 1) / 2;
  channels.pads[axes] = size - 1 - channels.pads[0];
  const Sym mean = squeeze(average_pool(unsqueeze(image * image, {1}), channels, Dims(axes, 0), true), {1});
  const Sym base = c.real("bias", 1) + mean * c.real("alpha", 1e-4);
  c.output(reshape(image / apply(Op::pow, base, c.real("beta", 0.75)), dims));
}

void lp_norm(ImportContext& c) {
  const Sym x = c.input(0);
  const std::vector<std::int64_t> axis{normalize_axis(c.integer("axis", -1), x.rank())};
  const std::int64_t p = c.integer("p", 2);
  if (p != 1 && p != 2) throw ModelError("p is {}, expected 1 or 2", p);
  Sym norm = reduce(Op::reduce_sum, p == 1 ? apply(Op::abs, x) : x * x, axis);
  if (p == 2) norm = apply(Op::sqrt, norm);
  c.output(where(apply(Op::equal, norm, 0.0), norm * 0.0, x / where(apply(Op::equal, norm, 0.0), 1.0, norm)));
}

const OnnxOp normalization_rows[] = {
    {"BatchNormalization", 7, batch_norm},
    {"GroupNormalization", 18, group_norm_op},
    {"InstanceNormalization", 6, instance_norm},
    {"LayerNormalization", 17, layer_norm_op},
    {"LpNormalization", 1, lp_norm},
    {"LRN", 1, local_response_norm},
    {"MeanVarianceNormalization", 9, mean_variance_norm},
    {"RMSNormalization", 23, rms_norm_op},
};

}  // namespace

std::span<const OnnxOp> onnx_normalization_ops() {
  return normalization_rows;
}

}  // namespace sylvite
