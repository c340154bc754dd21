#pragma once
// The least time that a kernel can take on a machine: by its operations at the rate of what it multiplies, by its inputs
// and outputs from the L2, and by its weights from where all weights of the model together lie, memory or a cache that
// holds them. The longest of the three is its bound.

#include <string_view>

#include "lowering/algorithms/form.h"
#include "lowering/plan/plan.h"
#include "lowering/plan/work.h"
#include "runtime/machine_peaks.h"

namespace sylvite {

/// What a bound comes from. Names are shown by `explain`.
enum class Limit { compute, l2, weights };
[[nodiscard]] std::string_view limit_name(Limit limit);

struct Bound {
  Limit limit = Limit::compute;
  double us = 0;  ///< microseconds; no run takes less
};

/// Bytes a second of reading so many again and again: between two measured numbers of bytes by their logarithms, beyond
/// them as the nearest.
[[nodiscard]] double read_rate(const MachinePeaks& peaks, std::int64_t bytes);

/// `weight_rate` is read_rate of all weights of the model. An element without a rate of its own counts as f32. A kernel may
/// do more than `work` counts: exponentials, comparisons, roundings.
[[nodiscard]] Bound bound_of(const Work& work, const MachinePeaks& peaks, double weight_rate);

/// The same work in a form that spares products, as Winograd's do. What the form adds (its transforms) does not count.
[[nodiscard]] Work work_in_form(const Work& work, const Form& form);

/// Bytes of all weights that launches of the plan read, each once.
[[nodiscard]] std::int64_t weight_bytes(const Plan& plan);

}  // namespace sylvite
