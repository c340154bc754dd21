#pragma once
// The version of this library; sylvite/version.h has that of the headers.

#include <string_view>

namespace sylvite {

extern const std::string_view version;

}  // namespace sylvite
