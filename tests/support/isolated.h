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

/// The outcome of `work` in a child process that is killed, with what it started, when it has computed for longer
/// than `seconds` on four threads or takes more than `megabytes` of memory (0: any; a GPU's driver reserves more than there is). How busy the machine is decides nothing:
/// only what waits without computing is killed by the clock, after twenty times as long.
[[nodiscard]] Outcome run_isolated(const std::function<Outcome()>& work, double seconds,
                                   std::size_t megabytes);

}  // namespace sylvite
