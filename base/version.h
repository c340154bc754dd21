#pragma once
// The version of this Sylvite, from CMake's project().

#include <string_view>

namespace sylvite {

extern const std::string_view version;

}  // namespace sylvite
