#include "frontend/onnx/text_tokens.h"

#include <algorithm>

namespace sylvite {

std::vector<std::wstring> letters_of(const std::wstring& text) {
  std::vector<std::wstring> tokens;
  for (const wchar_t letter : text) tokens.emplace_back(1, letter);
  return tokens;
}

std::vector<TextPiece> matches_in(const std::wstring& text, const TextPattern& pattern, std::size_t least) {
  std::vector<TextPiece> tokens;
  for (std::size_t at = 0; at < text.size();) {
    const auto found = pattern.find(text, at);
    if (!found) break;
    const auto [start, length] = *found;
    const bool counts = length >= least;
    if (counts) tokens.push_back({start, length});
    at = counts ? start + length : start + 1;
  }
  return tokens;
}

std::vector<std::wstring> parts_between(const std::wstring& text, const TextPattern& separator,
                                        std::size_t least) {
  std::vector<std::wstring> tokens;
  const auto add = [&](std::size_t from, std::size_t to) {
    if (to - from >= least) tokens.push_back(text.substr(from, to - from));
  };
  std::size_t from = 0;
  while (from < text.size()) {
    const auto found = separator.find(text, from);
    if (!found) break;
    const auto [start, length] = *found;
    add(from, start);
    from = start + std::max<std::size_t>(length, 1);
  }
  if (from < text.size()) add(from, text.size());
  return tokens;
}

}  // namespace sylvite
