#pragma once
// Regular expressions of models over texts in UTF-8: letters are code points.

#include <cstdint>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <utility>

#include "frontend/onnx/text_automaton.h"

namespace sylvite {

/// Code points; a byte that is no UTF-8 becomes a number of its own, which to_bytes turns back.
[[nodiscard]] std::wstring to_letters(std::string_view text);
[[nodiscard]] std::string to_bytes(std::wstring_view letters);

/// Takes time in proportion to the text and the pattern, whatever they are.
class TextPattern {
 public:
  /// Throws UnsupportedError for a pattern that is malformed or too long.
  explicit TextPattern(const std::string& pattern);
  /// Throws UnsupportedError where the pattern is too long for so many letters of text in all.
  void check(std::int64_t letters) const;
  [[nodiscard]] bool is_whole(const std::wstring& text) const;
  /// Where the first match at or behind `from` begins, and its length.
  [[nodiscard]] std::optional<std::pair<std::size_t, std::size_t>> find(const std::wstring& text,
                                                                        std::size_t from) const;

 private:
  std::int64_t length_;  ///< with repeats written out
  std::wregex regex_;
  std::unique_ptr<TextAutomaton> automaton_;  ///< of most patterns; absent for the others
};

}  // namespace sylvite
