#pragma once
// Images whose channels come last, for operators that have an attribute for it.

#include "frontend/graph/graph_builder.h"

namespace sylvite {

/// [N, ..., C] -> [N, C, ...]. Throws ModelError below rank 3.
[[nodiscard]] Sym channels_first(Sym x);
/// [N, C, ...] -> [N, ..., C]. REQUIRES rank 3 or more.
[[nodiscard]] Sym channels_last(Sym x);

}  // namespace sylvite
