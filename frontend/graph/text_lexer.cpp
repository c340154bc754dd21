#include "frontend/graph/text_lexer.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace sylvite {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word_character(char c) {
  return is_letter(c) || is_digit(c) || std::string_view("./$+-~#").find(c) != std::string_view::npos;
}

template <typename Float>
using Bits = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;

template <typename Float>
constexpr Bits<Float> canonical_nan = std::bit_cast<Bits<Float>>(std::numeric_limits<Float>::quiet_NaN());

template <typename Float>
std::string write_real(Float value) {
  if (std::isnan(value)) {
    const auto bits = std::bit_cast<Bits<Float>>(value);
    return bits == canonical_nan<Float> ? "nan" : fmt::format("nan({:x})", bits);
  }
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";  // n: inf
  return text;
}

/// Reads all of `word` in base 10 (16 for bits); false when it is not a number of that type or out of range.
template <typename Number, typename... Base>
bool read_number(std::string_view word, Number& number, Base... base) {
  const char* begin = word.data();
  const char* end = begin + word.size();
  const auto [stop, error] = std::from_chars(begin, end, number, base...);
  return error == std::errc() && stop == end && !word.empty();
}

template <typename Float>
Float read_real(Lexer& lexer) {
  if (const auto bits = lexer.nan(canonical_nan<Float>))
    return std::bit_cast<Float>(static_cast<Bits<Float>>(*bits));
  const std::string_view word = lexer.word();
  Float value = 0;
  if (!read_number(word, value)) lexer.fail(fmt::format("expected a number, got '{}'", word));
  return value;
}

}  // namespace

std::string quote_string(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string quote_name(const std::string& name) {
  const bool bare = !name.empty() && std::all_of(name.begin(), name.end(), is_word_character);
  return bare ? name : quote_string(name);
}

std::string real_text(double value) {
  return write_real(value);
}
std::string real_text(float value) {
  return write_real(value);
}

std::string type_text(const TensorType& type) {
  std::string text = fmt::format("{}{}", dtype_name(type.dtype), type.shape.to_string());
  if (type.layout.channel_block > 0) text += fmt::format("@c{}", type.layout.channel_block);
  return text;
}

std::string symbol_info_text(const SymbolInfo& info) {
  std::string text = fmt::format("{}..", info.low);
  if (info.high != INT64_MAX) text += std::to_string(info.high);
  for (std::size_t i = 0; i < info.hints.size(); ++i)
    text += (i == 0 ? "@" : "+") + std::to_string(info.hints[i]);
  return text;
}

void Lexer::fail(const std::string& message) const {
  const std::string_view read = text_.substr(0, std::min(position_, text_.size()));
  throw ModelError("line {}: {}", 1 + std::count(read.begin(), read.end(), '\n'), message);
}

std::size_t Lexer::next() const {
  return std::min(text_.find_first_not_of(" \t\r\n", position_), text_.size());
}

char Lexer::peek() const {
  return next() < text_.size() ? text_[next()] : '\0';
}

bool Lexer::accept(char wanted) {
  if (next() >= text_.size() || peek() != wanted) return false;
  position_ = next() + 1;
  return true;
}

void Lexer::expect(char wanted) {
  if (accept(wanted)) return;
  position_ = next();
  fail(position_ >= text_.size() ? fmt::format("expected '{}', got the end of the text", wanted)
                                 : fmt::format("expected '{}', got '{}'", wanted, peek()));
}

void Lexer::expect_word(std::string_view wanted) {
  const std::string_view found = word();
  if (found != wanted) fail(fmt::format("expected '{}', got '{}'", wanted, found));
}

std::string_view Lexer::word() {
  position_ = next();
  const std::size_t start = position_;
  while (position_ < text_.size() && is_word_character(text_[position_])) ++position_;
  return text_.substr(start, position_ - start);
}

std::string Lexer::name() {
  std::string found = peek() == '"' ? quoted_string() : std::string(word());
  if (found.empty()) fail("expected a name");
  return found;
}

char Lexer::escaped() {
  if (position_ >= text_.size()) fail("the text ends inside a string");
  const char kind = text_[position_++];
  if (kind == '"' || kind == '\\') return kind;
  unsigned value = 0;
  const std::string_view digits = text_.substr(position_, 2);
  if (kind != 'x' || digits.size() != 2 || !read_number(digits, value, 16))
    fail("unknown escape in a string");
  position_ += 2;
  return static_cast<char>(value);
}

std::string Lexer::quoted_string() {
  expect('"');
  std::string result;
  for (;;) {
    if (position_ >= text_.size()) fail("the text ends inside a string");
    const char c = text_[position_++];
    if (c == '"') return result;
    result += c == '\\' ? escaped() : c;
  }
}

std::int64_t Lexer::integer() {
  std::int64_t value = 0;
  const std::string_view found = word();
  if (!read_number(found, value)) fail(fmt::format("expected a 64-bit integer, got '{}'", found));
  return value;
}

std::uint64_t Lexer::unsigned_integer() {
  std::uint64_t value = 0;
  const std::string_view found = word();
  if (!read_number(found, value)) fail(fmt::format("expected a 64-bit unsigned integer, got '{}'", found));
  return value;
}

double Lexer::real() {
  return read_real<double>(*this);
}
float Lexer::real32() {
  return read_real<float>(*this);
}

std::optional<std::uint64_t> Lexer::nan(std::uint64_t canonical) {
  if (!text_.substr(next()).starts_with("nan")) return std::nullopt;
  expect_word("nan");
  if (!accept('(')) return canonical;
  std::uint64_t bits = 0;
  if (!read_number(word(), bits, 16)) fail("expected the bits of a NaN in hexadecimal");
  expect(')');
  return bits;
}

Extent Lexer::extent() {
  position_ = next();
  const std::size_t start = position_;
  int depth = 0;
  for (bool is_quoted = false; position_ < text_.size(); ++position_) {
    const char c = text_[position_];
    if (is_quoted && c == '\\') ++position_;
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted) continue;
    if (depth == 0 && (c == ',' || c == ']')) break;
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
  }
  position_ = std::min(position_, text_.size());
  try {
    return Extent::parse(text_.substr(start, position_ - start));
  } catch (const Error& error) {
    fail(error.what());
  }
}

SymbolInfo Lexer::symbol_info() {
  SymbolInfo info;
  info.low = digits();
  expect('.');
  expect('.');
  if (std::isdigit(static_cast<unsigned char>(peek())) != 0) info.high = digits();
  if (info.high < info.low) fail(fmt::format("no size is from {} to {}", info.low, info.high));
  if (!accept('@')) return info;
  do info.hints.push_back(digits());
  while (accept('+'));
  return info;
}

std::int64_t Lexer::digits() {
  position_ = next();
  const std::size_t start = position_;
  while (position_ < text_.size() && is_digit(text_[position_])) ++position_;
  std::int64_t value = 0;
  const std::string_view found = text_.substr(start, position_ - start);
  if (!read_number(found, value)) fail(fmt::format("expected a size, got '{}'", found));
  return value;
}

TensorType Lexer::type() {
  TensorType result;
  try {
    result.dtype = parse_dtype(word());
  } catch (const ModelError& error) {
    fail(error.what());
  }
  expect('[');
  while (!accept(']')) {
    if (!result.shape.empty()) expect(',');
    Extent next = extent();
    if (next.is_known() && next.constant() < 0) fail(fmt::format("extent {} is negative", next.constant()));
    result.shape.push_back(std::move(next));
  }
  if (!accept('@')) return result;
  const std::string_view layout = word();
  int block = 0;
  if (!layout.starts_with('c') || !read_number(layout.substr(1), block) || block < 1 || result.rank() < 2)
    fail(fmt::format("'@{}' is not a layout of this type", layout));
  result.layout.channel_block = block;
  return result;
}

}  // namespace sylvite
