#pragma once
// "Did you mean ...?" for every table of names.

#include <span>
#include <string>
#include <string_view>

namespace sylvite {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
[[nodiscard]] int edit_distance(std::string_view a, std::string_view b);

/// The known name nearest to `wanted`, or "" when none is near. A name whose last dotted part equals `wanted`
/// is near.
[[nodiscard]] std::string nearest_name(std::string_view wanted, std::span<const std::string_view> known);

/// "; did you mean NAME?" or "".
[[nodiscard]] std::string suggestion(std::string_view wanted, std::span<const std::string_view> known);

}  // namespace sylvite
