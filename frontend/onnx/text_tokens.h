#pragma once
// Ways to cut a text into tokens. Tokens of fewer than `least` letters are left out.

#include <string>
#include <vector>

#include "frontend/onnx/text_pattern.h"

namespace sylvite {

struct TextPiece {
  std::size_t start, length;
};

/// Each letter, without what lies between.
[[nodiscard]] std::vector<std::wstring> letters_of(const std::wstring& text);
/// What matches; behind a match that is too short the search goes on at its second letter.
[[nodiscard]] std::vector<TextPiece> matches_in(const std::wstring& text, const TextPattern& pattern,
                                                std::size_t least);
/// What lies between matches.
[[nodiscard]] std::vector<std::wstring> parts_between(const std::wstring& text, const TextPattern& separator,
                                                      std::size_t least);

}  // namespace sylvite
