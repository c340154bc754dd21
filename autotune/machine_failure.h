#pragma once
// Failures of the machine told from failures of a candidate: those pass, and say nothing of the candidate.

#include <string>
#include <string_view>

namespace sylvite {

/// Whether the message of a compiler or a worker tells of a full disk, memory, open files or processes used up, or a
/// kill from outside. Such a result is no verdict: it is not stored, and a stored one is tried again.
[[nodiscard]] bool is_machine_failure(std::string_view message);

/// Whether it tells that no memory was found. Of a candidate that asks for absurdly much this is no machine's failure.
[[nodiscard]] bool is_lack_of_memory(std::string_view message);

/// The message and, when it is the machine's failure, what to do about it.
[[nodiscard]] std::string with_advice(const std::string& message);

}  // namespace sylvite
