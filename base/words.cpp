#include "base/words.h"

#include <algorithm>

#include "base/error.h"

namespace sylvite {

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    if (std::string part = trimmed(text.substr(0, end)); !part.empty()) parts.push_back(std::move(part));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return line;
}

std::string printable(std::string_view text) {
  constexpr std::size_t most = 1500;
  std::string result(text);
  if (result.size() > most)
    result = result.substr(0, most / 2) + " ... " + result.substr(result.size() - most / 2);
  std::ranges::replace_if(result, [](unsigned char c) { return c != '\n' && (c < 0x20 || c == 0x7f); }, '?');
  return result;
}

namespace {

std::pair<std::string, std::string> split_at(std::string_view text, std::size_t equals,
                                             std::string_view what) {
  if (equals == std::string_view::npos || equals == 0)
    throw UsageError("{} {}: expected NAME=VALUE", what, text);
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

}  // namespace

std::string counted(std::size_t count, std::string_view word, std::string_view plural) {
  if (count != 1 && !plural.empty()) return fmt::format("{} {}", count, plural);
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::pair<std::string, std::string> split_assignment(std::string_view text, std::string_view what) {
  return split_at(text, text.find('='), what);
}

std::pair<std::string, std::string> split_last_assignment(std::string_view text, std::string_view what) {
  return split_at(text, text.rfind('='), what);
}

}  // namespace sylvite
