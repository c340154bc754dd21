#pragma once
// Division of whole numbers that rounds up. REQUIRES a >= 0 and b > 0.

#include <concepts>
#include <type_traits>

namespace sylvite {

template <std::integral A, std::integral B>
[[nodiscard]] constexpr std::common_type_t<A, B> ceil_div(A a, B b) {
  return (a + b - 1) / b;
}

/// The least multiple of b that is not below a.
template <std::integral A, std::integral B>
[[nodiscard]] constexpr std::common_type_t<A, B> round_up(A a, B b) {
  return ceil_div(a, b) * b;
}

}  // namespace sylvite
