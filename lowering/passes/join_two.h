#pragma once
// Folds of few elements, one by one.

#include <optional>

#include "sylvite/graph.h"

namespace sylvite {

/// The operation that joins two elements as `fold` does; nothing where that is no fold.
[[nodiscard]] inline std::optional<Op> join_of(Op fold) {
  switch (fold) {
    case Op::reduce_sum:
      return Op::add;
    case Op::reduce_max:
      return Op::maximum;
    case Op::reduce_min:
      return Op::minimum;
    case Op::reduce_prod:
      return Op::mul;
    default:
      return std::nullopt;
  }
}

}  // namespace sylvite
