#pragma once
// Bytes as an object file, without an assembler.

#include <string>
#include <string_view>

namespace sylvite {

/// A relocatable ELF object for x86-64 with the bytes as read-only data at a multiple of 64, under `symbol`, which what links
/// to a shared library made of it does not see. The section is a large one: linkers place it where it does not come
/// between code and data, so that it may have any size.
[[nodiscard]] std::string data_object(std::string_view bytes, const std::string& symbol);

}  // namespace sylvite
