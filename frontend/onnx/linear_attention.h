#pragma once
// The recurrence of linear attention: a state that decays, is corrected and read in each step.

#include <utility>

#include "frontend/graph/graph_builder.h"

namespace sylvite {

/// T: steps, B: batch, H: heads; Hq is a multiple of H. All are f32.
struct LinearAttention {
  Sym q, k, v;  ///< [T, B, Hq, Dk], [T, B, H, Dk], [T, B, H, Dv]
  Sym decay,
      beta;  ///< [T, B, H, 1 or Dk], the logarithm, and [T, B, H, 1]; absent: neither decay nor correction
  double scale = 1;
};

/// What is read, [T, B, Hq, Dv], and the last state, [B, H, Dk, Dv].
[[nodiscard]] std::pair<Sym, Sym> linear_recurrence(const LinearAttention& in, Sym state);

}  // namespace sylvite
