#include "frontend/onnx/text_pattern.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <numeric>
#include <vector>

#include "base/error.h"

namespace sylvite {
namespace {

constexpr wchar_t stray_byte = 0x110000;  ///< behind the last code point

/// The length of a pattern once repeats in braces are written out; not exact where it is malformed.
std::int64_t written_out_length(const std::string& pattern) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  std::vector<std::int64_t> groups{0};  // their lengths up to here, those that are open
  std::int64_t last = 0;                // what a repeat would repeat
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '(') {
      groups.push_back(0);
    } else if (pattern[i] == ')' && groups.size() > 1) {
      last = groups.back() + 2;
      groups.pop_back();
      groups.back() = std::min(groups.back() + last, most);
    } else if (pattern[i] == '{') {
      std::int64_t repeats = 1;
      std::int64_t number = 0;
      for (++i; i < pattern.size() && pattern[i] != '}'; ++i) {
        const bool is_digit = std::isdigit(static_cast<unsigned char>(pattern[i])) != 0;
        number = is_digit ? std::min(number * 10 + (pattern[i] - '0'), most) : 0;
        repeats = std::max(repeats, number);
      }
      groups.back() = std::min(groups.back() + last * (repeats - 1), most);
      last = std::min(last * repeats, most);
    } else {
      if (pattern[i] == '\\') ++i;
      last = 1;
      groups.back() = std::min(groups.back() + 1, most);
    }
  }
  return std::accumulate(groups.begin(), groups.end(), std::int64_t{0});
}

std::int64_t checked_length(const std::string& pattern) {
  if (pattern.size() > 1000) throw UnsupportedError("a pattern of {} characters", pattern.size());
  const std::int64_t length = written_out_length(pattern);
  if (length > 10'000) throw UnsupportedError("a pattern of {} characters, repeats written out", length);
  return length;
}

std::wregex compile(const std::string& pattern) {
  try {
    return std::wregex(to_letters(pattern),
                       std::regex_constants::ECMAScript | std::regex_constants::__polynomial);
  } catch (const std::regex_error& error) {
    throw UnsupportedError("pattern '{}': {}", pattern, error.what());
  }
}

/// How many bytes behind the first belong to its letter; -1 for a byte that begins none.
int bytes_behind(unsigned char first) {
  if (first < 0x80) return 0;
  if (first >= 0xc2 && first < 0xe0) return 1;
  if (first >= 0xe0 && first < 0xf0) return 2;
  return first >= 0xf0 && first < 0xf5 ? 3 : -1;
}

}  // namespace

std::wstring to_letters(std::string_view text) {
  std::wstring letters;
  letters.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    const int behind = bytes_behind(first);
    const auto count = static_cast<std::size_t>(std::max(behind, 0));
    const std::string_view rest = text.substr(at + 1, count);
    const bool is_letter = behind >= 0 && rest.size() == count && std::ranges::all_of(rest, [](char byte) {
                             return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
                           });
    if (!is_letter) {
      letters += static_cast<wchar_t>(stray_byte + first);
      ++at;
      continue;
    }
    std::uint32_t letter = behind == 0 ? first : first & (0x3fU >> count);
    for (const char byte : rest) letter = (letter << 6U) | (static_cast<unsigned char>(byte) & 0x3fU);
    letters += static_cast<wchar_t>(letter);
    at += 1 + count;
  }
  return letters;
}

std::string to_bytes(std::wstring_view letters) {
  std::string text;
  for (const wchar_t wide : letters) {
    const auto letter = std::bit_cast<std::uint32_t>(wide);
    const auto add = [&](std::uint32_t mark, std::uint32_t shift, std::uint32_t mask) {
      text += static_cast<char>(mark | ((letter >> shift) & mask));
    };
    if (letter >= static_cast<std::uint32_t>(stray_byte)) {
      add(0, 0, 0xff);
    } else if (letter < 0x80) {
      add(0, 0, 0x7f);
    } else if (letter < 0x800) {
      add(0xc0, 6, 0x1f);
      add(0x80, 0, 0x3f);
    } else if (letter < 0x10000) {
      add(0xe0, 12, 0x0f);
      add(0x80, 6, 0x3f);
      add(0x80, 0, 0x3f);
    } else {
      add(0xf0, 18, 0x07);
      add(0x80, 12, 0x3f);
      add(0x80, 6, 0x3f);
      add(0x80, 0, 0x3f);
    }
  }
  return text;
}

TextPattern::TextPattern(const std::string& pattern)
    : length_(checked_length(pattern)), regex_(compile(pattern)) {
  if (std::optional<PatternProgram> program = program_of(to_letters(pattern)))
    automaton_ = std::make_unique<TextAutomaton>(std::move(*program));
}

void TextPattern::check(std::int64_t letters) const {
  constexpr std::int64_t most_work = 10'000'000;
  if (length_ * letters > most_work) {
    throw UnsupportedError("a pattern of {} characters, repeats written out, over {} characters of text",
                           length_, letters);
  }
}

bool TextPattern::is_whole(const std::wstring& text) const {
  return automaton_ ? automaton_->is_whole(text) : std::regex_match(text, regex_);
}

std::optional<std::pair<std::size_t, std::size_t>> TextPattern::find(const std::wstring& text,
                                                                     std::size_t from) const {
  if (automaton_) return automaton_->find(text, from);
  std::wsmatch found;
  const auto start = text.begin() + static_cast<std::ptrdiff_t>(from);
  const auto flags = from == 0 ? std::regex_constants::match_default : std::regex_constants::match_prev_avail;
  if (!std::regex_search(start, text.end(), found, regex_, flags)) return std::nullopt;
  return std::pair{from + static_cast<std::size_t>(found.position(0)),
                   static_cast<std::size_t>(found.length(0))};
}

}  // namespace sylvite
