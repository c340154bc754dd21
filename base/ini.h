#pragma once
// INI files as a list of keys and values.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sylvite {

/// "section.key" and value, in the order of the file. What follows a #, lines that begin with ; and a byte order mark at the
/// start are skipped. Throws UsageError, which `origin` begins, for a line that is neither a section nor KEY = VALUE, and for
/// a key that is there twice.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> parse_ini(std::string_view text,
                                                                         std::string_view origin);

}  // namespace sylvite
