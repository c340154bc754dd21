#pragma once
// Runs a piece of work in a child process with limits, so that a crash or a hang is an outcome.

#include <cstddef>
#include <functional>
#include <string>

namespace sylvite {

struct Outcome {
  std::string kind;    ///< what the work says, or crash or timeout
  std::string reason;  ///< may be empty
};

/// The outcome of `work` in a child process that is killed, with what it started, after `seconds` or when it
/// takes more than `megabytes` of memory.
[[nodiscard]] Outcome run_isolated(const std::function<Outcome()>& work, double seconds,
                                   std::size_t megabytes);

}  // namespace sylvite
