#pragma once
// Text in pieces.

#include <string>
#include <string_view>
#include <vector>

namespace sylvite {

/// Without white space at either end.
[[nodiscard]] std::string trimmed(std::string_view text);

/// The parts between separators, trimmed; empty ones are left out.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

}  // namespace sylvite
