#include "runtime/product_rates.h"

#include <immintrin.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace sylvite {
namespace {

constexpr long fma_rounds = 60000;

// Twelve independent chains of full vectors, kept from the optimiser by the assembly.

__attribute__((target("avx512f"))) double fma_rate_avx512() {
  const __m512 b = _mm512_set1_ps(1.0001F);
  __m512 a0 = b, a1 = b, a2 = b, a3 = b, a4 = b, a5 = b, a6 = b, a7 = b, a8 = b, a9 = b, a10 = b, a11 = b;
  const double start = steady_seconds();
  for (long round = 0; round < fma_rounds; ++round) {
    asm volatile(
        "vfmadd231ps %6, %6, %0\n\tvfmadd231ps %6, %6, %1\n\tvfmadd231ps %6, %6, %2\n\t"
        "vfmadd231ps %6, %6, %3\n\tvfmadd231ps %6, %6, %4\n\tvfmadd231ps %6, %6, %5"
        : "+v"(a0), "+v"(a1), "+v"(a2), "+v"(a3), "+v"(a4), "+v"(a5)
        : "v"(b));
    asm volatile(
        "vfmadd231ps %6, %6, %0\n\tvfmadd231ps %6, %6, %1\n\tvfmadd231ps %6, %6, %2\n\t"
        "vfmadd231ps %6, %6, %3\n\tvfmadd231ps %6, %6, %4\n\tvfmadd231ps %6, %6, %5"
        : "+v"(a6), "+v"(a7), "+v"(a8), "+v"(a9), "+v"(a10), "+v"(a11)
        : "v"(b));
  }
  return static_cast<double>(fma_rounds) * 12 * 32 / (steady_seconds() - start);
}

__attribute__((target("avx2,fma"))) double fma_rate_avx2() {
  const __m256 b = _mm256_set1_ps(1.0001F);
  __m256 a0 = b, a1 = b, a2 = b, a3 = b, a4 = b, a5 = b, a6 = b, a7 = b, a8 = b, a9 = b, a10 = b, a11 = b;
  const double start = steady_seconds();
  for (long round = 0; round < fma_rounds; ++round) {
    asm volatile(
        "vfmadd231ps %6, %6, %0\n\tvfmadd231ps %6, %6, %1\n\tvfmadd231ps %6, %6, %2\n\t"
        "vfmadd231ps %6, %6, %3\n\tvfmadd231ps %6, %6, %4\n\tvfmadd231ps %6, %6, %5"
        : "+x"(a0), "+x"(a1), "+x"(a2), "+x"(a3), "+x"(a4), "+x"(a5)
        : "x"(b));
    asm volatile(
        "vfmadd231ps %6, %6, %0\n\tvfmadd231ps %6, %6, %1\n\tvfmadd231ps %6, %6, %2\n\t"
        "vfmadd231ps %6, %6, %3\n\tvfmadd231ps %6, %6, %4\n\tvfmadd231ps %6, %6, %5"
        : "+x"(a6), "+x"(a7), "+x"(a8), "+x"(a9), "+x"(a10), "+x"(a11)
        : "x"(b));
  }
  return static_cast<double>(fma_rounds) * 12 * 16 / (steady_seconds() - start);
}

constexpr std::size_t tile_numbers = std::size_t{16} * 32;  ///< in bf16

/// Numbers of both signs below one, as kernels multiply them, in bf16. Of zeros the tile unit was measured to
/// multiply an eighth more in a second (the clock falls with real numbers): a rate that no kernel can have.
std::array<std::uint16_t, 4 * tile_numbers> numbers_in_tiles() {
  std::array<std::uint16_t, 4 * tile_numbers> numbers{};
  std::uint32_t state = 1;
  for (std::uint16_t& number : numbers) {
    state = state * 1664525U + 1013904223U;  // Numerical Recipes' generator
    const float value = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31F;
    number = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U);
  }
  return numbers;
}

}  // namespace

/// More chains than fma_rate has, since one product takes longer.
__attribute__((target("avx512f"))) double bf16_rate() {
  const __m512 b = _mm512_setzero_ps();
  __m512 a0 = b, a1 = b, a2 = b, a3 = b, a4 = b, a5 = b, a6 = b, a7 = b, a8 = b, a9 = b, a10 = b, a11 = b;
  __m512 c0 = b, c1 = b, c2 = b, c3 = b, c4 = b, c5 = b;
  const double start = steady_seconds();
  for (long round = 0; round < fma_rounds; ++round) {
    asm volatile(
        "vdpbf16ps %6, %6, %0\n\tvdpbf16ps %6, %6, %1\n\tvdpbf16ps %6, %6, %2\n\t"
        "vdpbf16ps %6, %6, %3\n\tvdpbf16ps %6, %6, %4\n\tvdpbf16ps %6, %6, %5"
        : "+v"(a0), "+v"(a1), "+v"(a2), "+v"(a3), "+v"(a4), "+v"(a5)
        : "v"(b));
    asm volatile(
        "vdpbf16ps %6, %6, %0\n\tvdpbf16ps %6, %6, %1\n\tvdpbf16ps %6, %6, %2\n\t"
        "vdpbf16ps %6, %6, %3\n\tvdpbf16ps %6, %6, %4\n\tvdpbf16ps %6, %6, %5"
        : "+v"(a6), "+v"(a7), "+v"(a8), "+v"(a9), "+v"(a10), "+v"(a11)
        : "v"(b));
    asm volatile(
        "vdpbf16ps %6, %6, %0\n\tvdpbf16ps %6, %6, %1\n\tvdpbf16ps %6, %6, %2\n\t"
        "vdpbf16ps %6, %6, %3\n\tvdpbf16ps %6, %6, %4\n\tvdpbf16ps %6, %6, %5"
        : "+v"(c0), "+v"(c1), "+v"(c2), "+v"(c3), "+v"(c4), "+v"(c5)
        : "v"(b));
  }
  return static_cast<double>(fma_rounds) * 18 * 64 / (steady_seconds() - start);
}

__attribute__((target("avx512f"))) double vnni_rate() {
  const __m512i b = _mm512_set1_epi8(1);
  __m512i a0 = b, a1 = b, a2 = b, a3 = b, a4 = b, a5 = b, a6 = b, a7 = b, a8 = b, a9 = b, a10 = b, a11 = b;
  const double start = steady_seconds();
  for (long round = 0; round < fma_rounds; ++round) {
    asm volatile(
        "vpdpbusd %6, %6, %0\n\tvpdpbusd %6, %6, %1\n\tvpdpbusd %6, %6, %2\n\t"
        "vpdpbusd %6, %6, %3\n\tvpdpbusd %6, %6, %4\n\tvpdpbusd %6, %6, %5"
        : "+v"(a0), "+v"(a1), "+v"(a2), "+v"(a3), "+v"(a4), "+v"(a5)
        : "v"(b));
    asm volatile(
        "vpdpbusd %6, %6, %0\n\tvpdpbusd %6, %6, %1\n\tvpdpbusd %6, %6, %2\n\t"
        "vpdpbusd %6, %6, %3\n\tvpdpbusd %6, %6, %4\n\tvpdpbusd %6, %6, %5"
        : "+v"(a6), "+v"(a7), "+v"(a8), "+v"(a9), "+v"(a10), "+v"(a11)
        : "v"(b));
  }
  return static_cast<double>(fma_rounds) * 12 * 128 / (steady_seconds() - start);
}

/// Four accumulators take turns.
__attribute__((target("amx-tile,amx-bf16"))) double amx_rate() {
  constexpr int tiles = 8;
  constexpr int rows = 16;
  constexpr int row_bytes = 64;
  constexpr int bf16_in_row = row_bytes / 2;
  struct alignas(64) TileConfiguration {  // as the processor reads it
    std::uint8_t palette = 1;
    std::array<std::uint8_t, 15> unused{};
    std::array<std::uint16_t, 16> row_bytes{};
    std::array<std::uint8_t, 16> rows{};
  } configuration;
  for (std::size_t i = 0; i < tiles; ++i) {
    configuration.row_bytes.at(i) = row_bytes;
    configuration.rows.at(i) = rows;
  }
  _tile_loadconfig(&configuration);
  const auto numbers = numbers_in_tiles();
  _tile_loadd(4, numbers.data(), row_bytes);
  _tile_loadd(5, numbers.data() + tile_numbers, row_bytes);
  _tile_loadd(6, numbers.data() + 2 * tile_numbers, row_bytes);
  _tile_loadd(7, numbers.data() + 3 * tile_numbers, row_bytes);
  constexpr long rounds = fma_rounds / 4;
  const double start = steady_seconds();
  for (long round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  const double seconds = steady_seconds() - start;
  _tile_release();
  return static_cast<double>(rounds) * 4 * 2 * rows * rows * bf16_in_row / seconds;
}

double fma_rate() {
  return __builtin_cpu_supports("avx512f") != 0 ? fma_rate_avx512() : fma_rate_avx2();
}

}  // namespace sylvite
