#pragma once
// Sizes that an exporter may have written into a model as numbers, although it declares them open.

#include <cstdint>
#include <vector>

namespace sylvite {

struct ParsedModel;

/// Numbers from 2 to 4096 of the short lists of integers among the main graph's constants, which shapes are made of: those
/// that stand there most often first, 24 at most. Never throws for a model that parse_model takes.
[[nodiscard]] std::vector<std::int64_t> traced_sizes(const ParsedModel& model);

}  // namespace sylvite
