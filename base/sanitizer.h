#pragma once
// Is this a build with AddressSanitizer (SYLVITE_SANITIZE of CMake)? Compilers tell in two ways. And what it must know of memory
// that is kept for later use.

#include <cstddef>

namespace sylvite {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool has_address_sanitizer = true;
#elif defined(__has_feature)
inline constexpr bool has_address_sanitizer = __has_feature(address_sanitizer);
#else
inline constexpr bool has_address_sanitizer = false;
#endif

}  // namespace sylvite

extern "C" {
// NOLINTBEGIN: the sanitizer's names
void __asan_poison_memory_region(const volatile void* begin, std::size_t bytes);
void __asan_unpoison_memory_region(const volatile void* begin, std::size_t bytes);
// NOLINTEND
}

namespace sylvite {

/// Nobody may touch this memory until it is shown again: AddressSanitizer reports who does. Costs nothing without it.
inline void hide_memory([[maybe_unused]] const void* begin, [[maybe_unused]] std::size_t bytes) {
  if constexpr (has_address_sanitizer) __asan_poison_memory_region(begin, bytes);
}
inline void show_memory([[maybe_unused]] const void* begin, [[maybe_unused]] std::size_t bytes) {
  if constexpr (has_address_sanitizer) __asan_unpoison_memory_region(begin, bytes);
}

}  // namespace sylvite
