#pragma once
// Numbers of 2, 4 or 8 bits, several to a byte.

#include "frontend/graph/graph_builder.h"

namespace sylvite {

/// The numbers of [..., bytes], one after another, the first in the lowest bits: [..., numbers], of i32.
[[nodiscard]] Sym unpacked_rows(Sym bytes, std::int64_t bits);

}  // namespace sylvite
