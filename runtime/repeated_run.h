#pragma once
// The runs of one program: workers wait beside a run only where the run before had a loop to share.

#include <functional>

namespace sylvite {

/// Thread safety: one thread at a time.
class RepeatedRun {
 public:
  RepeatedRun(int threads, double spin_seconds) : threads_(threads), spin_seconds_(spin_seconds) {}

  /// As with_workers (threads.h), but where the run before had no loop for several threads, no worker waits: on a busy machine the
  /// end of `body` would wait until each worker had its turn. A loop that comes all the same gets workers for itself.
  void run(const std::function<void()>& body);

 private:
  int threads_;
  double spin_seconds_;
  bool had_loops_ = true;  ///< nothing is known of the first run
};

}  // namespace sylvite
