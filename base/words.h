#pragma once
// Text in pieces.

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sylvite {

/// Without white space at either end.
[[nodiscard]] std::string trimmed(std::string_view text);

/// The parts between separators, trimmed; empty ones are left out.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

/// Takes the next line from the text, without its end.
[[nodiscard]] std::string_view take_line(std::string_view& text);

/// For messages that quote names of models: control characters but line breaks are '?', and what is very long lacks its
/// middle, so that nothing drives a terminal or fills it.
[[nodiscard]] std::string printable(std::string_view text);

/// "1 kernel", "2 kernels", "0 kernels": for words whose plural takes an s, or is `plural`.
[[nodiscard]] std::string counted(std::size_t count, std::string_view word, std::string_view plural = {});

/// NAME and VALUE of "NAME=VALUE", at the first '='. Throws UsageError, which `what` begins, when there is no '=' or no
/// name.
[[nodiscard]] std::pair<std::string, std::string> split_assignment(std::string_view text,
                                                                   std::string_view what);
/// The same at the last '=', for names that may hold some and values that do not.
[[nodiscard]] std::pair<std::string, std::string> split_last_assignment(std::string_view text,
                                                                        std::string_view what);

}  // namespace sylvite
