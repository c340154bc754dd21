#pragma once
// Lists to which each trip of a loop appends a tensor: what is appended is stacked.

#include <optional>
#include <vector>

#include "frontend/onnx/import_context.h"

namespace sylvite {

/// Of each state: does the body append one value to it, and do nothing else with it?
[[nodiscard]] std::vector<bool> appended_states(const onnx::GraphProto& body);

/// The list with a value for each element of the first axis behind it.
[[nodiscard]] OnnxBinding with_appended(const OnnxBinding& list, Sym stacked);

/// The value whose elements along the first axis these are, in order and all of them; nothing for others.
[[nodiscard]] std::optional<Sym> stacked_values(GraphBuilder& builder, const std::vector<Sym>& values);

}  // namespace sylvite
