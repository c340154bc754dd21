#pragma once
// Extents that are not numbers yet: integer expressions over named symbols, in one canonical form, so that two
// expressions that are equal as polynomials over the same floors and maxima are equal as values.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sylvite/error.h"

namespace sylvite {

/// A size is a number only once symbols have values.
class UnknownExtentError : public UnsupportedError {
 public:
  using UnsupportedError::UnsupportedError;
};

/// Values of symbols.
using SymbolValues = std::map<std::string, std::int64_t>;

struct ExtentFactor;

/// A sum of products of symbols, of floor(e / c) with a constant c > 0, and of max(e, 0); everything else is
/// made of these: a ceiling is a floor, a remainder is e - c * floor(e / c), min and max are sums with max(e, 0).
/// Symbols stand for extents: they are never negative, which max(e, 0) and comparisons rely on.
/// A value type: cheap to copy, immutable, safe to share between threads. A known number allocates nothing.
///
/// Arithmetic throws ModelError where a coefficient leaves 64 bits or an expression grows past a hundred terms.
class Extent {
 public:
  Extent() = default;  ///< 0
  Extent(std::int64_t number)
      : constant_(number) {}  // NOLINT(google-explicit-constructor): {1, 3} is a shape
  /// REQUIRES a name that is not empty.
  [[nodiscard]] static Extent symbol(const std::string& name);

  [[nodiscard]] bool is_known() const { return terms_ == nullptr; }
  [[nodiscard]] std::int64_t known()
      const;  ///< the number; throws UnknownExtentError, naming it, when there is none
  /// The value for these symbols. Throws InternalError for one that is missing, ModelError for an overflow.
  [[nodiscard]] std::int64_t at(const SymbolValues& binding) const;
  /// Symbols replaced by expressions; those not named stay.
  [[nodiscard]] Extent substitute(const std::map<std::string, Extent>& by_name) const;
  /// Names of the symbols, sorted, each once.
  [[nodiscard]] std::vector<std::string> symbols() const;

  /// e.g. 2*batch*floor((width+1)/2)+3. Names that are no identifiers are quoted. Reads back with parse.
  [[nodiscard]] std::string to_string() const;
  /// Also reads ceil(e/c), mod(e,c), min(a,b) and max(a,b). Throws ModelError for anything else.
  [[nodiscard]] static Extent parse(std::string_view text);

  Extent& operator+=(const Extent& other);
  Extent& operator-=(const Extent& other);
  Extent& operator*=(const Extent& other);
  friend Extent operator+(Extent a, const Extent& b) { return a += b; }
  friend Extent operator-(Extent a, const Extent& b) { return a -= b; }
  friend Extent operator*(Extent a, const Extent& b) { return a *= b; }
  friend bool operator==(const Extent& a, const Extent& b) { return compare(a, b) == 0; }
  /// The order of `compare`, for maps: it says nothing of values.
  friend bool operator<(const Extent& a, const Extent& b) { return compare(a, b) < 0; }

  // REQUIRES divisor > 0.
  friend Extent floor_div(const Extent& e, std::int64_t divisor);
  friend Extent ceil_div(const Extent& e, std::int64_t divisor);
  friend Extent mod(const Extent& e, std::int64_t divisor);
  friend Extent min(const Extent& a, const Extent& b);
  friend Extent max(const Extent& a, const Extent& b);

  /// The extent that is one factor alone.
  [[nodiscard]] static Extent of_factor(ExtentFactor factor);

  /// A total order without meaning, for canonical forms and maps: < 0, 0 or > 0.
  [[nodiscard]] static int compare(const Extent& a, const Extent& b);

  // The form, for those that walk it (bounds, printing kernels).
  struct Term;
  [[nodiscard]] std::int64_t constant() const { return constant_; }
  [[nodiscard]] const std::vector<Term>& terms() const;  ///< sorted; empty for a known number

 private:
  static Extent of(std::vector<Term> terms, std::int64_t constant);
  static Extent positive(const Extent& e);  ///< max(e, 0)

  std::int64_t constant_ = 0;
  std::shared_ptr<const std::vector<Term>> terms_;  ///< nullptr for a known number
};

/// What a term multiplies: a symbol, floor(argument / divisor), or max(argument, 0).
struct ExtentFactor {
  enum class Kind : std::uint8_t { symbol, quotient, positive } kind = Kind::symbol;
  std::string name;          ///< of a symbol
  Extent argument;           ///< of the others
  std::int64_t divisor = 1;  ///< of a quotient
};

struct Extent::Term {
  std::int64_t coefficient = 0;       ///< never 0
  std::vector<ExtentFactor> factors;  ///< sorted, at least one; a power is a repetition
};

/// What is known of a symbol.
struct SymbolInfo {
  std::int64_t low = 1;
  std::int64_t high = INT64_MAX;    ///< INT64_MAX: no bound
  std::vector<std::int64_t> hints;  ///< sizes to be fast at
};
using SymbolTable = std::map<std::string, SymbolInfo>;

/// Every value of an extent lies in [low, high]; INT64_MIN and INT64_MAX stand for no bound.
struct Interval {
  std::int64_t low = INT64_MIN;
  std::int64_t high = INT64_MAX;
  bool operator==(const Interval&) const = default;
};

/// Symbols that the table lacks are at least 0.
[[nodiscard]] Interval bounds(const Extent& e, const SymbolTable& symbols);

/// The same extent with floors and maxima that the ranges decide taken away.
[[nodiscard]] Extent simplify(const Extent& e, const SymbolTable& symbols);

}  // namespace sylvite
