#include "lowering/plan/term_pair.h"

#include <cmath>
#include <utility>

namespace sylvite {
namespace {

using Numbers = std::vector<std::int64_t>;

long double determinant(const Numbers& a, const Numbers& b, std::size_t i, std::size_t j) {
  return static_cast<long double>(a[i]) * static_cast<long double>(b[j]) -
         static_cast<long double>(a[j]) * static_cast<long double>(b[i]);
}

/// nullopt where it is none, as far as rounding lets see.
std::optional<std::int64_t> integer(long double number) {
  constexpr long double largest = 1e15L;
  constexpr long double rounding = 1e-3L;
  if (std::abs(number) > largest || std::abs(number - std::round(number)) > rounding) return std::nullopt;
  return std::llround(number);
}

bool has_values(const Numbers& a, std::int64_t of_a, const Numbers& b, std::int64_t of_b,
                const Numbers& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::int64_t first = 0;
    std::int64_t sum = 0;
    if (__builtin_mul_overflow(of_a, a[i], &first) || __builtin_mul_overflow(of_b, b[i], &sum) ||
        __builtin_add_overflow(first, sum, &sum) || sum != values[i])
      return false;
  }
  return true;
}

/// The coefficients of `a` and `b`, by Cramer's rule at the first point and the first that is another there; exact at all points.
std::optional<std::pair<std::int64_t, std::int64_t>> coefficients_of(const Numbers& a, const Numbers& b,
                                                                     const Numbers& values) {
  std::size_t other = 1;
  while (other < values.size() && determinant(a, b, 0, other) == 0) ++other;
  if (other == values.size()) return std::nullopt;
  const long double divisor = determinant(a, b, 0, other);
  const std::optional<std::int64_t> of_a = integer(determinant(values, b, 0, other) / divisor);
  if (!of_a) return std::nullopt;
  const std::optional<std::int64_t> of_b = integer(determinant(a, values, 0, other) / divisor);
  if (!of_b || !has_values(a, *of_a, b, *of_b, values)) return std::nullopt;
  return std::pair{*of_a, *of_b};
}

}  // namespace

std::optional<std::vector<ScaledTerm>> only_sum_of_two(const std::vector<Numbers>& terms,
                                                       const Numbers& values) {
  std::optional<std::vector<ScaledTerm>> only;
  for (std::size_t i = 0; i < terms.size(); ++i)
    for (std::size_t j = i + 1; j < terms.size(); ++j) {
      const auto found = coefficients_of(terms[i], terms[j], values);
      if (!found) continue;
      std::vector<ScaledTerm> sum;
      if (found->first != 0) sum.push_back({i, found->first});
      if (found->second != 0) sum.push_back({j, found->second});
      if (only && *only != sum) return std::nullopt;
      only = std::move(sum);
    }
  return only;
}

}  // namespace sylvite
