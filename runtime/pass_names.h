#pragma once
// The whole way from an imported graph to the one that is planned, in one list.

#include <string_view>
#include <vector>

namespace sylvite {

/// The names of all graph passes in the order in which they are applied: the frontend's, then lowering's.
[[nodiscard]] std::vector<std::string_view> pass_names();

}  // namespace sylvite
