#pragma once
// Is this a build with AddressSanitizer (SYLVITE_SANITIZE of CMake)? Compilers tell in two ways.

namespace sylvite {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool has_address_sanitizer = true;
#elif defined(__has_feature)
inline constexpr bool has_address_sanitizer = __has_feature(address_sanitizer);
#else
inline constexpr bool has_address_sanitizer = false;
#endif

}  // namespace sylvite
