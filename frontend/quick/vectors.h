#pragma once
// Loops that are compiled for AVX-512, for AVX2 and for any processor, as GCC and Clang make vectors of them: without this, of the
// four lanes at most that every processor has, and of none where elements are compared.

#include <cstdint>
#include <vector>

namespace sylvite::quick {

enum class Vectors : std::uint8_t { any, avx2, avx512 };

/// Those of this processor, widest first.
[[nodiscard]] const std::vector<Vectors>& usable_vectors();

/// Everything that `body` calls becomes part of each function, but for what is defined elsewhere.
template <typename Body>
[[gnu::flatten, gnu::target("avx512f,avx512bw,avx512dq,avx512vl,fma")]] void run_for_avx512(
    const Body& body) {
  body();
}
template <typename Body>
[[gnu::flatten, gnu::target("avx2,fma")]] void run_for_avx2(const Body& body) {
  body();
}

/// Calls body(). REQUIRES usable vectors.
template <typename Body>
void run_in(Vectors vectors, const Body& body) {
  if (vectors == Vectors::avx512)
    run_for_avx512(body);
  else if (vectors == Vectors::avx2)
    run_for_avx2(body);
  else
    body();
}

/// The same with the widest.
template <typename Body>
void in_vectors(const Body& body) {
  run_in(usable_vectors().front(), body);
}

}  // namespace sylvite::quick
