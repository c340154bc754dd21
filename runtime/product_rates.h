#pragma once
// How many operations a second one core does when it does nothing but multiply and add, measured: what the share of a
// kernel is taken of.

namespace sylvite {

/// Operations a second of one run of about a millisecond; a product that is added counts two. Of f32.
[[nodiscard]] double fma_rate();
/// Of pairs of bf16. REQUIRES Machine::bf16_products.
[[nodiscard]] double bf16_rate();
/// Of 8-bit integers. REQUIRES AVX512_VNNI.
[[nodiscard]] double vnni_rate();
/// Of bf16 in tiles. REQUIRES Machine::amx.
[[nodiscard]] double amx_rate();

}  // namespace sylvite
