#pragma once
// What is said on stderr beside results and progress, through spdlog: warnings, and at lower levels what each stage did.
// Nothing is, until set_up_log: programs that use the library hear nothing.

#include <fmt/format.h>

#include <string_view>

#include "base/config.h"

namespace sylvite {

/// From now on messages of `least` and above are written: as "sylvite: LEVEL: TEXT", or with `as_json` as a line
/// {"log":"LEVEL","message":"TEXT"}. Thread safe.
void set_up_log(LogLevel least, bool as_json);

/// For messages that are dear to make.
[[nodiscard]] bool is_logged(LogLevel level);

/// Control characters become '?': messages quote names of models. Thread safe.
void log_text(LogLevel level, std::string_view text);

template <typename... Arguments>
void log_line(LogLevel level, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  if (is_logged(level)) log_text(level, fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace sylvite
