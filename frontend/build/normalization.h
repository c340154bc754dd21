#pragma once
// Normalisations that several operators share.

#include <vector>

#include "frontend/graph/graph_builder.h"

namespace sylvite {

/// axis, axis + 1, ... rank - 1.
[[nodiscard]] std::vector<std::int64_t> axes_from(int axis, int rank);

/// Rows without any element above minus infinity give zeros.
[[nodiscard]] Sym safe_softmax(Sym x, int axis);

/// (x - mean) / sqrt(variance + epsilon) over the axes, with the mean and the inverse deviation.
struct Standardized {
  Sym value, mean, inverse_deviation;
};
[[nodiscard]] Standardized standardize(Sym x, const std::vector<std::int64_t>& axes, double epsilon);
/// Its value alone, over axis and all behind it: computed wide, as the operation is, where sums of f16 would overflow.
[[nodiscard]] Sym standardized(Sym x, int axis, double epsilon);

/// A per-channel vector shaped to broadcast against [N, C, ...] of the given rank.
[[nodiscard]] Sym per_channel(Sym vector, int rank);

/// The core operation, or its formula where scale or bias are not of the normalised shape. `bias` may be
/// absent.
[[nodiscard]] Sym layer_norm(Sym x, Sym scale, Sym bias, int axis, double epsilon);
[[nodiscard]] Sym rms_norm(Sym x, Sym scale, int axis, double epsilon);
/// x of [N, C, ...] by the statistics over each group of channels; scale and bias are per group or per
/// channel.
[[nodiscard]] Sym group_norm(Sym x, Sym scale, Sym bias, std::int64_t groups, double epsilon);

}  // namespace sylvite
