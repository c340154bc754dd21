#pragma once
// JSON values as text, whatever bytes their strings hold.

#include <nlohmann/json.hpp>
#include <string>

namespace sylvite {

/// `indent` as in nlohmann::json::dump: -1 for one line. What is not UTF-8, as names in models and rows of damaged databases
/// may be, becomes U+FFFD.
template <typename Json>
[[nodiscard]] std::string json_text(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sylvite
