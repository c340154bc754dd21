#include "lowering/passes/broadcast_dims.h"

#include <algorithm>

#include "frontend/graph/views.h"

namespace sylvite {

std::optional<Dims> broadcast_dims(Dims operand, const Dims& from, const Dims& to) {
  if (operand.size() > to.size()) return std::nullopt;
  operand.insert(operand.begin(), to.size() - operand.size(), 1);
  Dims result;
  for (const DimGroup& group : dim_groups(from, to)) {
    bool ones = true;
    bool whole = true;
    for (std::size_t d = group.to_begin; d < group.to_end; ++d) {
      ones = ones && operand[d] == 1;
      whole = whole && operand[d] == to[d];
    }
    if (!ones && !whole) return std::nullopt;
    for (std::size_t d = group.from_begin; d < group.from_end; ++d) result.push_back(whole ? from[d] : 1);
  }
  const auto first =
      std::find_if(result.begin(), result.end(), [](std::int64_t extent) { return extent != 1; });
  result.erase(result.begin(), first);
  return result;
}

}  // namespace sylvite
