#pragma once
// Size ranges as text, and what makes one a range.

#include <string_view>

#include "sylvite/size_range.h"

namespace sylvite {

/// Extents stay below this, so that 32 bits hold an index.
inline constexpr std::int64_t most_elements = INT32_MAX;

/// Reads what SizeRange::to_string writes. Throws UsageError, which `what` begins, for anything else and for what
/// check_size_range refuses.
[[nodiscard]] SizeRange parse_size_range(std::string_view text, std::string_view what);

/// The range with its ends at multiples. Throws UsageError, which `what` begins, when it is reversed, begins below 0
/// (a number: below 1), holds no multiple or has a hint that is no size of it.
[[nodiscard]] SizeRange check_size_range(SizeRange range, std::string_view what);

}  // namespace sylvite
