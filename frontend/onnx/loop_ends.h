#pragma once
// Loops whose end is a condition that no run changes, as counters are: how many trips they make, found while importing.

#include <optional>
#include <string>
#include <vector>

#include "frontend/onnx/import_context.h"

namespace sylvite {

struct KnownEnd {
  std::int64_t trips = 0;
  /// Of each state that no run changes, its values: [trips + 1, ...], before each trip and after the last one. Empty for
  /// other states.
  std::vector<std::optional<Tensor>> states;
};

/// The end of a loop of at most that many trips, of which the first is made. Nothing where a run decides it, and where
/// it is none that a few small operations find.
[[nodiscard]] std::optional<KnownEnd> find_end(ImportContext& c, const onnx::GraphProto& body,
                                               std::int64_t most, const std::vector<OnnxBinding>& states);

/// Of each state: does the body pass it on as it is?
[[nodiscard]] std::vector<bool> unchanged_states(const onnx::GraphProto& body);

}  // namespace sylvite
