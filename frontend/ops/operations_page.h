#pragma once
// The page of the core operations, written from the op table.

#include <string>

namespace sylvite {

/// docs/operations.md.
[[nodiscard]] std::string operations_markdown();

}  // namespace sylvite
