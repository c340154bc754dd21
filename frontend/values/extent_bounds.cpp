// What ranges of symbols say of an extent: interval arithmetic, with two rules where it would lose too much.

#include <algorithm>
#include <array>
#include <optional>

#include "sylvite/extent.h"

namespace sylvite {
namespace {

using Term = Extent::Term;
using Factor = ExtentFactor;
using Kind = ExtentFactor::Kind;

constexpr std::int64_t below_all = INT64_MIN;
constexpr std::int64_t above_all = INT64_MAX;

bool is_infinite(std::int64_t value) {
  return value == below_all || value == above_all;
}

// Ends of intervals: what overflows is no bound. 0 times no bound is 0.
std::int64_t multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (a == 0 || b == 0) return 0;
  if (is_infinite(a) || is_infinite(b) || __builtin_mul_overflow(a, b, &product))
    return (a < 0) == (b < 0) ? above_all : below_all;
  return product;
}

std::int64_t add(std::int64_t a, std::int64_t b, std::int64_t no_bound) {
  std::int64_t sum = 0;
  if (a == no_bound || b == no_bound || __builtin_add_overflow(a, b, &sum)) return no_bound;
  return sum;
}

Interval operator+(const Interval& a, const Interval& b) {
  return {add(a.low, b.low, below_all), add(a.high, b.high, above_all)};
}

Interval operator*(const Interval& a, const Interval& b) {
  const std::array<std::int64_t, 4> ends = {multiply(a.low, b.low), multiply(a.low, b.high),
                                            multiply(a.high, b.low), multiply(a.high, b.high)};
  const auto [low, high] = std::minmax_element(ends.begin(), ends.end());
  return {*low, *high};
}

Interval both(const Interval& a, const Interval& b) {
  return {std::max(a.low, b.low), std::min(a.high, b.high)};
}
Interval either(const Interval& a, const Interval& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

std::int64_t floor_end(std::int64_t value, std::int64_t divisor) {
  return is_infinite(value) ? value : value / divisor - (value % divisor < 0 ? 1 : 0);
}

/// How often the rules below may take an expression apart: each makes two or three of one.
constexpr int most_splits = 4;

Interval bounds(const Extent& e, const SymbolTable& symbols, int splits);

Interval bounds_of(const Factor& factor, const SymbolTable& symbols, int splits) {
  if (factor.kind == Kind::symbol) {
    const auto found = symbols.find(factor.name);
    if (found == symbols.end()) return {0, above_all};
    return {found->second.low, found->second.high};
  }
  const Interval argument = bounds(factor.argument, symbols, splits);
  if (factor.kind == Kind::quotient)
    return {floor_end(argument.low, factor.divisor), floor_end(argument.high, factor.divisor)};
  return {std::max<std::int64_t>(argument.low, 0), std::max<std::int64_t>(argument.high, 0)};
}

/// Term by term.
Interval plain_bounds(const Extent& e, const SymbolTable& symbols, int splits) {
  Interval sum{e.constant(), e.constant()};
  for (const Term& term : e.terms()) {
    Interval product{term.coefficient, term.coefficient};
    for (const Factor& factor : term.factors) product = product * bounds_of(factor, symbols, splits);
    sum = sum + product;
  }
  return sum;
}

/// The first term that is a multiple of one floor or maximum of that kind; nullptr when there is none.
const Term* find_term(const Extent& e, Kind kind) {
  for (const Term& term : e.terms()) {
    if (term.factors.size() != 1 || term.factors[0].kind != kind) continue;
    if (kind != Kind::quotient || term.coefficient % term.factors[0].divisor == 0) return &term;
  }
  return nullptr;
}

Extent term_extent(const Term& term) {
  return Extent::of_factor(term.factors[0]) * term.coefficient;
}

/// k*c*floor(a / c) = k*a - k*r with r in [0, c - 1]: floors that cancel against what they divide.
Interval without_floor(const Extent& e, const Term& term, const SymbolTable& symbols, int splits) {
  const Factor& quotient = term.factors[0];
  const std::int64_t k = term.coefficient / quotient.divisor;
  const Interval rest = Interval{-k, -k} * Interval{0, quotient.divisor - 1};
  return bounds(e - term_extent(term) + quotient.argument * k, symbols, splits) + rest;
}

/// max(a, 0) is one of its arguments, and at least each: minima and maxima of sums that share terms.
Interval without_maximum(const Extent& e, const Term& term, const SymbolTable& symbols, int splits) {
  const Extent others = e - term_extent(term);
  const Interval zero = bounds(others, symbols, splits);
  const Interval argument = bounds(others + term.factors[0].argument * term.coefficient, symbols, splits);
  Interval result = either(zero, argument);
  if (term.coefficient > 0)
    result.low = std::max(zero.low, argument.low);
  else
    result.high = std::min(zero.high, argument.high);
  return result;
}

Interval bounds(const Extent& e, const SymbolTable& symbols, int splits) {
  Interval result = plain_bounds(e, symbols, splits);
  if (splits == 0) return result;
  if (const Term* floor = find_term(e, Kind::quotient))
    result = both(result, without_floor(e, *floor, symbols, splits - 1));
  if (const Term* maximum = find_term(e, Kind::positive))
    result = both(result, without_maximum(e, *maximum, symbols, splits - 1));
  return result;
}

}  // namespace

Interval bounds(const Extent& e, const SymbolTable& symbols) {
  return bounds(e, symbols, most_splits);
}

Extent simplify(const Extent& e, const SymbolTable& symbols) {
  Extent result = e.constant();
  for (const Term& term : e.terms()) {
    Extent product = term.coefficient;
    for (const Factor& factor : term.factors) {
      const Interval range = bounds_of(factor, symbols, most_splits);
      if (range.low == range.high && !is_infinite(range.low)) {
        product *= range.low;
      } else if (factor.kind == Kind::symbol) {
        product *= Extent::of_factor(factor);
      } else {
        const Extent argument = simplify(factor.argument, symbols);
        const bool is_whole = factor.kind == Kind::positive && bounds(argument, symbols).low >= 0;
        product *= is_whole                        ? argument
                   : factor.kind == Kind::quotient ? floor_div(argument, factor.divisor)
                                                   : max(argument, 0);
      }
    }
    result += product;
  }
  return result;
}

}  // namespace sylvite
