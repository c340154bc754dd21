#pragma once
// The page of the ATen operations that are imported, written from their table.

#include <string>

namespace sylvite {

/// docs/torch_operators.md.
[[nodiscard]] std::string torch_operators_markdown();

}  // namespace sylvite
