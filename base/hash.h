#pragma once
// Content identity. Kernels, objects and database keys are named by this hash, so it is a persistent format.

#include <string>
#include <string_view>

namespace sylvite {

/// SHA-256 of the bytes as 64 lower-case hex digits.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

/// The first 16 hex digits of sha256_hex: short enough for symbols and tables.
[[nodiscard]] std::string short_hash(std::string_view bytes);

}  // namespace sylvite
