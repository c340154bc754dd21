#pragma once
// Symbols of object files that what links to them does not see.

#include <string>
#include <string_view>

namespace sylvite {

/// The relocatable object with every symbol that it defines hidden, but those that begin with `prefix`: objects linked
/// with it still find them, and what is linked from it exports only these. An object that is no 64-bit ELF file stays as
/// it is.
[[nodiscard]] std::string with_hidden_symbols(std::string_view object, std::string_view prefix);

}  // namespace sylvite
