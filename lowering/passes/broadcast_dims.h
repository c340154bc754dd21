#pragma once
// Operands of work that is done on a reshaped value.

#include <optional>

#include "sylvite/types.h"

namespace sylvite {

/// The dims under which an operand that broadcasts to `to` broadcasts in the same way to `from`, if there are any. REQUIRES equal
/// element counts of `from` and `to`, none zero.
[[nodiscard]] std::optional<Dims> broadcast_dims(Dims operand, const Dims& from, const Dims& to);

}  // namespace sylvite
