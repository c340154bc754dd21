#pragma once
// Ctrl-C as a wish to end soon: the first is noted, the second ends the process.

namespace sylvite {

/// While one lives, the first SIGINT or SIGTERM is noted and the next one acts as usual. Signals that the process
/// ignores stay ignored. One at a time: signals belong to the whole process.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();  ///< what was noted stays known until the next scope
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
};

/// The signal that was noted; 0 when there was none. For any thread.
[[nodiscard]] int interrupt_signal();

}  // namespace sylvite
