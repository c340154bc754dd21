#pragma once
// Sizes that an exporter may have written into a model as numbers, although it declares them open.

#include <cstdint>
#include <vector>

#include "sylvite/types.h"

namespace sylvite {

struct ParsedModel;

/// Numbers from 2 to 4096 of the short lists of integers among the main graph's constants, which shapes are made of: those
/// that stand there most often first, 24 at most. Never throws for a model that parse_model takes.
[[nodiscard]] std::vector<std::int64_t> traced_sizes(const ParsedModel& model);

/// Shapes of the weights that the first nodes read, 16 at most, in their order: what a layer multiplies or scales has extents of
/// its weights.
[[nodiscard]] std::vector<Dims> first_weights(const ParsedModel& model);

}  // namespace sylvite
