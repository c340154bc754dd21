#pragma once
// Which process works on something, so that no other process of the machine does it, too.

#include <string>
#include <string_view>

namespace sylvite {

/// Names this process; no other process of this machine has the name, not even a later one with the same number.
[[nodiscard]] std::string claim_of_this_process();

/// Whether the process that made the claim still runs here. False for claims of another machine, or from before a
/// restart.
[[nodiscard]] bool is_claim_held(std::string_view claim);

}  // namespace sylvite
