#include "base/size_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/rounding.h"

namespace sylvite {
namespace {

std::int64_t parse_size(std::string_view text, std::string_view what, std::int64_t least = 1) {
  std::int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error == std::errc::result_out_of_range) size = SizeRange::open;
  const bool is_number = error != std::errc::invalid_argument && end == text.data() + text.size();
  if (text.empty() || !is_number) {
    throw UsageError(
        "{}: '{}' is not a size; expected a size or a range such as 8, 1..64, 1..512@128+384 or 32..1024%32",
        what, text);
  }
  if (size < least) throw UsageError("{}: {} is not a size; sizes begin at {}", what, text, least);
  if (size > most_elements) throw UsageError("{}: {} is too large; at most {}", what, text, most_elements);
  return size;
}

std::vector<std::int64_t> parse_hints(std::string_view text, std::string_view what) {
  std::vector<std::int64_t> hints;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('+', at), text.size());
    hints.push_back(parse_size(text.substr(at, end - at), what));
    at = end + 1;
  }
  return hints;
}

}  // namespace

std::string SizeRange::to_string() const {
  if (is_fixed()) return std::to_string(low);
  std::string text = fmt::format("{}..", low);
  if (high != open) text += std::to_string(high);
  if (multiple != 1) text += fmt::format("%{}", multiple);
  if (!hints.empty()) text += fmt::format("@{}", fmt::join(hints, "+"));
  return text;
}

SizeRange check_size_range(SizeRange range, std::string_view what) {
  const std::int64_t least = range.is_fixed() ? 1 : 0;
  if (range.low < least) throw UsageError("{}: {} is not a size; sizes begin at {}", what, range.low, least);
  if (range.high > most_elements && range.high != SizeRange::open)
    throw UsageError("{}: {} is too large; at most {}", what, range.high, most_elements);
  if (range.high < range.low)
    throw UsageError("{}: the range ends at {}, before it begins at {}", what, range.high, range.low);
  if (range.multiple < 1) throw UsageError("{}: sizes cannot be multiples of {}", what, range.multiple);
  const std::int64_t first = round_up(range.low, range.multiple);
  const std::int64_t last =
      range.high == SizeRange::open ? SizeRange::open : range.high / range.multiple * range.multiple;
  if (first > last) {
    throw UsageError("{}: no multiple of {} lies between {} and {}", what, range.multiple, range.low,
                     range.high);
  }
  range.low = first;
  range.high = last;
  for (const std::int64_t hint : range.hints) {
    if (hint % range.multiple != 0)
      throw UsageError("{}: {} after '@' is no multiple of {}", what, hint, range.multiple);
    if (!range.contains(hint))
      throw UsageError("{}: {} after '@' is not in the range {}..{}", what, hint, range.low, range.high);
  }
  return range;
}

SizeRange parse_size_range(std::string_view text, std::string_view what) {
  std::size_t at = std::min(text.find_first_of("@%"), text.size());
  const std::string_view ends = text.substr(0, at);
  const std::size_t dots = ends.find("..");
  if (dots == std::string_view::npos) {
    const std::int64_t size = parse_size(ends, what);
    if (at < text.size()) throw UsageError("{}: '@' and '%' belong to a range such as 1..64", what);
    return size;
  }
  SizeRange range;
  range.low = parse_size(ends.substr(0, dots), what, 0);
  if (dots + 2 < ends.size()) range.high = parse_size(ends.substr(dots + 2), what);
  while (at < text.size()) {
    const std::size_t end = std::min(text.find_first_of("@%", at + 1), text.size());
    const std::string_view part = text.substr(at + 1, end - at - 1);
    const bool is_multiple = text[at] == '%';
    if (is_multiple ? range.multiple != 1 : !range.hints.empty())
      throw UsageError("{}: '{}' is given twice", what, text[at]);
    if (is_multiple)
      range.multiple = parse_size(part, what);
    else
      range.hints = parse_hints(part, what);
    at = end;
  }
  return check_size_range(std::move(range), what);
}

}  // namespace sylvite
