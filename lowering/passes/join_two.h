#pragma once
// Folds of few elements, one by one.

#include <cstdint>
#include <optional>

#include "frontend/graph/views.h"
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

/// What `fold` makes of `count` elements of floats of `type`, which `part_at(place)` gives, added up in f32 at least; nullopt where that gives none.
template <typename PartAt>
[[nodiscard]] std::optional<ValueId> joined_parts(Graph& graph, const Node& fold, Op join, DType type,
                                                  std::int64_t count, PartAt part_at) {
  const DType wide = type == DType::f64 ? DType::f64 : DType::f32;
  ValueId all = no_value;
  for (std::int64_t place = 0; place < count; ++place) {
    const std::optional<ValueId> part = part_at(place);
    if (!part) return std::nullopt;
    const ValueId element = add_cast(graph, *part, wide);
    all = all == no_value ? element : graph.add(join, {all, element}, {}, fold.name);
  }
  return add_cast(graph, all, type);
}

}  // namespace sylvite
