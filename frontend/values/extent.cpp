#include "sylvite/extent.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <optional>
#include <set>

#include "base/error.h"
#include "frontend/values/extents_at.h"

namespace sylvite {
namespace {

using Term = Extent::Term;
using Factor = ExtentFactor;
using Kind = ExtentFactor::Kind;

constexpr std::size_t most_terms = 100;

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) throw ModelError("an extent does not fit 64 bits: {} + {}", a, b);
  return sum;
}

std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    throw ModelError("an extent does not fit 64 bits: {} * {}", a, b);
  return product;
}

std::int64_t floor_of(std::int64_t a, std::int64_t divisor) {
  return a / divisor - (a % divisor < 0 ? 1 : 0);
}

template <typename T>
int order(const T& a, const T& b) {
  return a < b ? -1 : (b < a ? 1 : 0);
}

int compare(const Factor& a, const Factor& b) {
  if (const int by_kind = order(a.kind, b.kind); by_kind != 0) return by_kind;
  if (const int by_name = a.name.compare(b.name); by_name != 0) return by_name;
  if (const int by_divisor = order(a.divisor, b.divisor); by_divisor != 0) return by_divisor;
  return a.kind == Kind::symbol ? 0 : Extent::compare(a.argument, b.argument);
}

/// Longer products first, as polynomials are written.
int compare(const std::vector<Factor>& a, const std::vector<Factor>& b) {
  if (a.size() != b.size()) return order(b.size(), a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    if (const int by_factor = compare(a[i], b[i]); by_factor != 0) return by_factor;
  return 0;
}

/// Sorted, like terms added, zeros left out.
std::vector<Term> collect(std::vector<Term> terms) {
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return compare(a.factors, b.factors) < 0; });
  std::vector<Term> result;
  for (Term& term : terms) {
    if (!result.empty() && compare(result.back().factors, term.factors) == 0)
      result.back().coefficient = checked_add(result.back().coefficient, term.coefficient);
    else
      result.push_back(std::move(term));
    if (result.back().coefficient == 0) result.pop_back();
  }
  if (result.size() > most_terms)
    throw UnsupportedError("an extent has more than {} terms; give some dimensions fixed sizes with --dims",
                           most_terms);
  return result;
}

/// By its form: sums of products of what is not negative.
bool is_never_negative(const Extent& e) {
  const auto is_never = [](const Factor& factor) {
    return factor.kind != Kind::quotient || is_never_negative(factor.argument);
  };
  return e.constant() >= 0 && std::all_of(e.terms().begin(), e.terms().end(), [&](const Term& term) {
           return term.coefficient > 0 && std::all_of(term.factors.begin(), term.factors.end(), is_never);
         });
}

std::int64_t divisor_of_all(const Extent& e) {
  std::int64_t divisor = std::abs(e.constant());
  for (const Term& term : e.terms()) divisor = std::gcd(divisor, term.coefficient);
  return divisor;
}

/// Each coefficient divided, which must leave nothing.
Extent divided(const Extent& e, std::int64_t divisor) {
  Extent result = e.constant() / divisor;
  for (Term term : e.terms()) {
    term.coefficient /= divisor;
    Extent product = term.coefficient;
    for (const Factor& factor : term.factors) product *= Extent::of_factor(factor);
    result += product;
  }
  return result;
}

}  // namespace

const std::vector<Term>& Extent::terms() const {
  static const std::vector<Term> none;
  return terms_ == nullptr ? none : *terms_;
}

Extent Extent::of(std::vector<Term> terms, std::int64_t constant) {
  Extent result(constant);
  terms = collect(std::move(terms));
  if (!terms.empty()) result.terms_ = std::make_shared<const std::vector<Term>>(std::move(terms));
  return result;
}

Extent Extent::of_factor(Factor factor) {
  Extent result;
  result.terms_ = std::make_shared<const std::vector<Term>>(std::vector<Term>{{1, {std::move(factor)}}});
  return result;
}

Extent Extent::symbol(const std::string& name) {
  if (name.empty()) throw InternalError("a symbolic extent needs a name");
  return of_factor({Kind::symbol, name, {}, 1});
}

std::int64_t Extent::known() const {
  if (!is_known())
    throw UnknownExtentError(
        fmt::format("extent '{}' is not known; give its dimensions sizes with --dims", to_string()));
  return constant_;
}

int Extent::compare(const Extent& a, const Extent& b) {
  const std::vector<Term>& left = a.terms();
  const std::vector<Term>& right = b.terms();
  if (left.size() != right.size()) return order(left.size(), right.size());
  for (std::size_t i = 0; i < left.size() && &left != &right; ++i) {
    if (const int by = sylvite::compare(left[i].factors, right[i].factors); by != 0) return by;
    if (const int by = order(left[i].coefficient, right[i].coefficient); by != 0) return by;
  }
  return order(a.constant_, b.constant_);
}

Extent& Extent::operator+=(const Extent& other) {
  const std::int64_t constant = checked_add(constant_, other.constant_);
  if (other.is_known()) {
    constant_ = constant;
    return *this;
  }
  std::vector<Term> all = terms();
  all.insert(all.end(), other.terms().begin(), other.terms().end());
  return *this = of(std::move(all), constant);
}

Extent& Extent::operator-=(const Extent& other) {
  return *this += Extent(-1) * other;
}

Extent& Extent::operator*=(const Extent& other) {
  const std::int64_t constant = checked_multiply(constant_, other.constant_);
  if (is_known() && other.is_known()) {
    constant_ = constant;
    return *this;
  }
  std::vector<Term> all;
  const auto add_scaled = [&](const Extent& e, std::int64_t scale) {
    for (const Term& term : e.terms())
      all.push_back({checked_multiply(term.coefficient, scale), term.factors});
  };
  add_scaled(*this, other.constant_);
  add_scaled(other, constant_);
  for (const Term& a : terms()) {
    for (const Term& b : other.terms()) {
      Term term{checked_multiply(a.coefficient, b.coefficient), a.factors};
      term.factors.insert(term.factors.end(), b.factors.begin(), b.factors.end());
      std::sort(term.factors.begin(), term.factors.end(),
                [](const Factor& x, const Factor& y) { return sylvite::compare(x, y) < 0; });
      all.push_back(std::move(term));
    }
  }
  return *this = of(std::move(all), constant);
}

Extent floor_div(const Extent& e, std::int64_t divisor) {
  if (divisor <= 0) throw ModelError("an extent is divided by {}", divisor);
  // What the divisor divides leaves the floor: floor(((c*q + r)*a + k) / c) = q*a + floor((r*a + k) / c).
  Extent whole = floor_of(e.constant_, divisor);
  std::int64_t constant = e.constant_ - floor_of(e.constant_, divisor) * divisor;
  std::vector<Extent::Term> rest;
  std::int64_t common = divisor;
  for (const Extent::Term& term : e.terms()) {
    const std::int64_t quotient = floor_of(term.coefficient, divisor);
    const std::int64_t remainder = term.coefficient - quotient * divisor;
    if (quotient != 0) whole += Extent::of({{quotient, term.factors}}, 0);
    if (remainder != 0) rest.push_back({remainder, term.factors});
    common = std::gcd(common, remainder);
  }
  if (rest.empty()) return whole;
  if (common > 1) {  // floor((g*a + k) / (g*c)) = floor((a + floor(k / g)) / c)
    for (Extent::Term& term : rest) term.coefficient /= common;
    return whole + floor_div(Extent::of(std::move(rest), constant / common), divisor / common);
  }
  // floor((floor(a / b) + k) / c) = floor((a + k*b) / (b*c))
  const Factor& first = rest[0].factors[0];
  if (rest.size() == 1 && rest[0].coefficient == 1 && rest[0].factors.size() == 1 &&
      first.kind == Kind::quotient) {
    return whole + floor_div(first.argument + checked_multiply(constant, first.divisor),
                             checked_multiply(first.divisor, divisor));
  }
  return whole + Extent::of_factor({Kind::quotient, "", Extent::of(std::move(rest), constant), divisor});
}

Extent ceil_div(const Extent& e, std::int64_t divisor) {
  return floor_div(e + (divisor - 1), divisor);
}

Extent mod(const Extent& e, std::int64_t divisor) {
  return e - floor_div(e, divisor) * divisor;
}

Extent Extent::positive(const Extent& e) {
  if (is_never_negative(e)) return e;
  if (is_never_negative(e * -1)) return 0;
  // One spelling of e and -e: max(-e, 0) = max(e, 0) - e.
  if (e.terms().front().coefficient < 0) return positive(e * -1) + e;
  const std::int64_t common = divisor_of_all(e);
  return of_factor({Kind::positive, "", divided(e, common), 1}) * common;
}

Extent min(const Extent& a, const Extent& b) {
  return a - Extent::positive(a - b);
}

Extent max(const Extent& a, const Extent& b) {
  return b + Extent::positive(a - b);
}

namespace {

/// The extent with each factor replaced: leaf by leaf, rebuilt in canonical form.
template <typename Replace>
Extent rebuilt(const Extent& e, Replace replace) {
  Extent result = e.constant();
  for (const Term& term : e.terms()) {
    Extent product = term.coefficient;
    for (const Factor& factor : term.factors) product *= replace(factor);
    result += product;
  }
  return result;
}

void add_symbols(const Extent& e, std::set<std::string>& names) {
  for (const Term& term : e.terms()) {
    for (const Factor& factor : term.factors)
      if (factor.kind == Kind::symbol)
        names.insert(factor.name);
      else
        add_symbols(factor.argument, names);
  }
}

std::int64_t value_of(const Factor& factor, const SymbolValues& binding) {
  if (factor.kind == Kind::symbol) {
    const auto found = binding.find(factor.name);
    if (found == binding.end()) throw InternalError("the symbol '{}' has no value", factor.name);
    return found->second;
  }
  const std::int64_t argument = factor.argument.at(binding);
  return factor.kind == Kind::quotient ? floor_of(argument, factor.divisor)
                                       : std::max<std::int64_t>(argument, 0);
}

}  // namespace

std::int64_t Extent::at(const SymbolValues& binding) const {
  std::int64_t sum = constant_;
  for (const Term& term : terms()) {
    std::int64_t product = term.coefficient;
    for (const Factor& factor : term.factors) product = checked_multiply(product, value_of(factor, binding));
    sum = checked_add(sum, product);
  }
  return sum;
}

Dims extents_at(const std::vector<Extent>& extents, const SymbolValues& sizes) {
  Dims values;
  values.reserve(extents.size());
  for (const Extent& extent : extents) values.push_back(extent.at(sizes));
  return values;
}

Extent Extent::substitute(const std::map<std::string, Extent>& by_name) const {
  return rebuilt(*this, [&](const Factor& factor) {
    if (factor.kind == Kind::symbol) {
      const auto found = by_name.find(factor.name);
      return found == by_name.end() ? of_factor(factor) : found->second;
    }
    const Extent argument = factor.argument.substitute(by_name);
    return factor.kind == Kind::quotient ? floor_div(argument, factor.divisor) : positive(argument);
  });
}

std::vector<std::string> Extent::symbols() const {
  std::set<std::string> names;
  add_symbols(*this, names);
  return {names.begin(), names.end()};
}

}  // namespace sylvite
