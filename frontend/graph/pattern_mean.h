#pragma once
// Patterns shared by the normalisation passes: means over trailing axes, and division by a root mean square.

#include <optional>

#include "sylvite/graph.h"

namespace sylvite {

/// What `id` is the square of, as a product or a power.
[[nodiscard]] std::optional<ValueId> square_argument(const Graph& graph, ValueId id);

/// mean(of) over axes first_axis..last, kept as unit dims.
struct Mean {
  ValueId of;
  std::int64_t first_axis;
};
[[nodiscard]] std::optional<Mean> match_mean(const Graph& graph, ValueId id);

/// dividend / sqrt(mean(squared^2) + epsilon), however the root and the quotient are spelled.
struct RootOfMeanSquare {
  ValueId dividend;
  ValueId squared;
  std::int64_t first_axis;
  double epsilon;
};
[[nodiscard]] std::optional<RootOfMeanSquare> match_divided_by_root_mean_square(const Graph& graph,
                                                                                const Node& root);

}  // namespace sylvite
