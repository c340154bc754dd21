#pragma once
// Words, quoted strings and numbers of the text form: how names and numbers are written, and how they read
// back.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sylvite/types.h"

namespace sylvite {

/// A name as it stands in the text: bare when every character is safe, else quoted with escapes.
[[nodiscard]] std::string quote_name(const std::string& name);
[[nodiscard]] std::string quote_string(const std::string& text);
/// The shortest text that reads back bit for bit, and that no integer looks like: 1.0, 1e-05, inf, nan,
/// nan(7ff8000000000001).
[[nodiscard]] std::string real_text(double value);
/// The same for a float, whose shortest text is shorter.
[[nodiscard]] std::string real_text(float value);
/// Like TensorType::to_string, with odd symbols quoted.
[[nodiscard]] std::string type_text(const TensorType& type);

/// A range with its hints: 1..64@1+8, or 1.. without a bound.
[[nodiscard]] std::string symbol_info_text(const SymbolInfo& info);

/// Reads a text from front to back. Every error is a ModelError that names the line.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  /// The next character after white space; '\0' at the end.
  [[nodiscard]] char peek() const;
  [[nodiscard]] bool accept(char wanted);
  void expect(char wanted);
  void expect_word(std::string_view wanted);
  /// A run of letters, digits and . _ $ / + - ~ #; empty when there is none.
  [[nodiscard]] std::string_view word();
  [[nodiscard]] std::string name();  ///< a word or a quoted string
  [[nodiscard]] std::string quoted_string();
  [[nodiscard]] std::int64_t integer();
  [[nodiscard]] std::uint64_t unsigned_integer();
  [[nodiscard]] double real();
  [[nodiscard]] float real32();
  /// The bits of nan(HEX), or `canonical` for a plain nan; nothing is read and nullopt returned when no NaN
  /// is next.
  [[nodiscard]] std::optional<std::uint64_t> nan(std::uint64_t canonical);
  [[nodiscard]] TensorType type();
  [[nodiscard]] Extent extent();           ///< up to a comma or bracket
  [[nodiscard]] SymbolInfo symbol_info();  ///< as symbol_info_text writes
  [[noreturn]] void fail(const std::string& message) const;

 private:
  [[nodiscard]] char escaped();
  [[nodiscard]] std::int64_t digits();

  [[nodiscard]] std::size_t next() const;  ///< where the next token starts

  std::string_view text_;
  std::size_t position_ = 0;  ///< the end of what was read
};

}  // namespace sylvite
