// Normalisations of com.microsoft: with what is added before them, and with the embeddings that they follow.

#include "base/error.h"
#include "frontend/build/normalization.h"
#include "frontend/onnx/channel_order.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/quantization.h"

namespace sylvite {
namespace {

constexpr double default_epsilon = 1e-12;

/// Input and skip, and the bias of input `i` if it is given.
Sym skip_sum(ImportContext& c, int i) {
  const Sym sum = c.input(0) + c.input(1);
  const Sym bias = c.optional(i);
  return bias ? sum + bias : sum;
}

void skip_layer_norm(ImportContext& c) {
  const Sym sum = skip_sum(c, 4);
  const int axis = normalize_axis(-1, sum.rank());
  c.output(0, layer_norm(sum, c.input(2), c.optional(3), axis, c.real("epsilon", default_epsilon)));
  c.output(3, sum);
}

void skip_rms_norm(ImportContext& c) {
  const Sym sum = skip_sum(c, 3);
  c.output(0, rms_norm(sum, c.input(2), normalize_axis(-1, sum.rank()), c.real("epsilon", default_epsilon)));
  c.output(3, sum);
}

/// As models have it before RMSNormalization was an operator of its own; in the default domain, too.
void simplified_layer_norm(ImportContext& c) {
  const Sym x = c.input(0);
  const int axis = normalize_axis(c.integer("axis", -1), x.rank());
  const double epsilon = c.real("epsilon", 1e-5);
  if (c.integer("stash_type", 1) != 1) throw UnsupportedError("stash_type is supported as 1 (f32) only");
  c.output(0, rms_norm(x, c.input(1), axis, epsilon));
  if (c.wants_output(1))
    c.output(1, apply(Op::rsqrt, reduce_mean(x * x, axes_from(axis, x.rank())) + epsilon));
}

/// Sums of words', positions' and segments' rows, normalised.
void embed_layer_norm(ImportContext& c) {
  const Sym ids = c.input(0);
  if (ids.rank() != 2) throw ModelError("input_ids have rank {}, expected 2", ids.rank());
  const Sym positions = c.input(3);
  if (!c.has_input(8) && (positions.rank() != 2 || positions.dim(0) < ids.dim(1)))
    throw ModelError("{} positions for {} words", positions.rank() == 2 ? positions.dim(0) : 0, ids.dim(1));
  const Sym at = c.has_input(8) ? gather(positions, c.input(8), 0) : slice(positions, 0, 0, ids.dim(1));
  Sym sum = gather(c.input(2), ids, 0) + at;
  if (c.has_input(1) != c.has_input(4))
    throw ModelError("segment_ids and segment_embedding belong together, one of them is missing");
  if (c.has_input(1)) sum = sum + gather(c.input(4), c.input(1), 0);
  c.output(0, layer_norm(sum, c.input(5), c.input(6), 2, c.real("epsilon", default_epsilon)));
  if (c.integer("mask_index_type", 1) > 1)
    throw UnsupportedError("mask_index_type is {}, 0 and 1 are supported", c.integer("mask_index_type", 1));
  const Sym mask = c.optional(7);
  if (c.wants_output(1)) {
    c.output(1, mask ? reduce(Op::reduce_sum, cast(mask, DType::i32), {1}, false)
                     : c.builder().filled(DType::i32, {ids.dim(0)}, 0));
  }
  c.output(2, sum);
}

/// Input i, quantised by the scale and the zero point that stand as far behind those of the first table.
Sym dequantized(ImportContext& c, Sym x, int i) {
  constexpr int tables = 2, scales = 8, zero_points = 13;
  const auto scalar = [&](int at) { return reshape(c.input(at), {}); };
  return dequantize(x, scalar(scales + i - tables), scalar(zero_points + i - tables));
}

/// The same with all tables quantised, and scale and bias.
void quantized_embed_layer_norm(ImportContext& c) {
  const Sym ids = c.input(0);
  if (ids.rank() != 2) throw ModelError("input_ids have rank {}, expected 2", ids.rank());
  const Sym positions = c.input(3);
  if (positions.rank() != 2 || positions.dim(0) < ids.dim(1))
    throw ModelError("{} positions for {} words", positions.rank() == 2 ? positions.dim(0) : 0, ids.dim(1));
  Sym sum =
      dequantized(c, gather(c.input(2), ids, 0), 2) + dequantized(c, slice(positions, 0, 0, ids.dim(1)), 3);
  if (c.has_input(1)) sum = sum + dequantized(c, gather(c.input(4), c.input(1), 0), 4);
  c.output(0, layer_norm(sum, dequantized(c, c.input(5), 5), dequantized(c, c.input(6), 6), 2,
                         c.real("epsilon", default_epsilon)));
  const Sym mask = c.optional(7);
  c.output(1, mask ? reduce(Op::reduce_sum, cast(mask, DType::i32), {1}, false)
                   : c.builder().filled(DType::i32, {ids.dim(0)}, 0));
}

Sym grouped(ImportContext& c, Sym x) {
  const bool is_last = c.integer("channels_last", 1) != 0;
  const Sym y = group_norm(is_last ? channels_first(x) : x, c.input(1), c.input(2),
                           c.required_integer("groups"), c.real("epsilon", 1e-5));
  const std::int64_t activation = c.required_integer("activation");
  if (activation != 0 && activation != 1)
    throw UnsupportedError("activation is {}, supported are 0 (none) and 1 (SiLU)", activation);
  const Sym activated = activation == 1 ? apply(Op::silu, y) : y;
  return is_last ? channels_last(activated) : activated;
}

void group_norm_with_activation(ImportContext& c) {
  c.output(grouped(c, c.input(0)));
}

/// The skip may be one vector per image.
void skip_group_norm(ImportContext& c) {
  const Sym x = c.input(0);
  if (x.rank() < 3) throw ModelError("the input has rank {}, expected at least 3", x.rank());
  const bool is_last = c.integer("channels_last", 1) != 0;
  const int channel_axis = is_last ? x.rank() - 1 : 1;
  Sym skip = c.input(3);
  if (skip.rank() == 2) {
    Dims dims(static_cast<std::size_t>(x.rank()), 1);
    dims[0] = skip.dim(0);
    dims.at(static_cast<std::size_t>(channel_axis)) = skip.dim(1);
    skip = reshape(skip, dims);
  }
  Sym sum = x + skip;
  if (const Sym bias = c.optional(4)) sum = sum + (is_last ? bias : per_channel(bias, x.rank()));
  c.output(0, grouped(c, sum));
  c.output(1, sum);
}

const OnnxOp contrib_normalization_rows[] = {
    {"EmbedLayerNormalization", 1, embed_layer_norm, microsoft},
    {"GroupNorm", 1, group_norm_with_activation, microsoft},
    {"QEmbedLayerNormalization", 1, quantized_embed_layer_norm, microsoft},
    {"SimplifiedLayerNormalization", 1, simplified_layer_norm},
    {"SimplifiedLayerNormalization", 1, simplified_layer_norm, microsoft},
    {"SkipGroupNorm", 1, skip_group_norm, microsoft},
    {"SkipLayerNormalization", 1, skip_layer_norm, microsoft},
    {"SkipSimplifiedLayerNormalization", 1, skip_rms_norm, microsoft},
};

}  // namespace

std::span<const OnnxOp> onnx_contrib_normalization_ops() {
  return contrib_normalization_rows;
}

}  // namespace sylvite
