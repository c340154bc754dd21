#pragma once
// Typed errors (sylvite/error.h), with messages that are formatted: InputError("{} rows, expected {}", rows, 4).

#include <fmt/format.h>

#include <utility>

#include "sylvite/error.h"

namespace sylvite {

/// Checked when compiled.
template <typename... Parts>
struct ErrorFormat {
  fmt::format_string<Parts...> text;

  template <std::size_t size>
  consteval ErrorFormat(const char (&format)[size]) : text(format) {}  // NOLINT(google-explicit-constructor)
};

template <ErrorCode Code>
template <typename First, typename... Rest>
ErrorOf<Code>::ErrorOf(std::type_identity_t<ErrorFormat<First, Rest...>> format, First&& first,
                       Rest&&... rest)
    : Error(Code, fmt::format(format.text, std::forward<First>(first), std::forward<Rest>(rest)...)) {}

}  // namespace sylvite
