#pragma once
// A sum of at most two terms, found by its values at a few points: far fewer than determine a sum of all terms.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace sylvite {

/// A term by its number, times a coefficient other than 0.
struct ScaledTerm {
  std::size_t term = 0;
  std::int64_t coefficient = 0;

  bool operator==(const ScaledTerm&) const = default;
};

/// The sum of at most two of `terms`, with integer coefficients, that has `values`: all of them are what something is at the same
/// points. nullopt where none has them, or where two do: then the points do not tell which it is. (A sum of k terms is the
/// only one of its kind where any 2k of them are independent: Donoho and Elad, "Optimally sparse representation in general
/// dictionaries", 2003. Here it is enough that no other sum has these values.)
[[nodiscard]] std::optional<std::vector<ScaledTerm>> only_sum_of_two(
    const std::vector<std::vector<std::int64_t>>& terms, const std::vector<std::int64_t>& values);

}  // namespace sylvite
