#pragma once
// One loop at a time, shared out to threads that wait for it. The mechanism under with_workers.

#include <atomic>
#include <chrono>
#include <cstdint>

namespace sylvite {

/// A parallel loop as Halide gives it.
struct ParallelLoop {
  void* user_context = nullptr;
  int (*task)(void*, int, std::uint8_t*) = nullptr;
  int first = 0;
  int count = 0;
  std::uint8_t* closure = nullptr;
};

/// One thread leads: it calls run(), then stop(). The others call serve(). Without others the leader does all
/// work.
class WorkerTeam {
 public:
  explicit WorkerTeam(double spin_seconds);

  int run(
      const ParallelLoop& loop);  ///< returns when every task has ended: 0, or the result of one that failed
  void serve();                   ///< works on loops until stop()
  void stop();

  /// Whether the calling thread is in a task: its loops must run serially.
  [[nodiscard]] static bool in_task();

 private:
  bool work_on(std::uint64_t state);
  template <typename Value>
  void await_change(const std::atomic<Value>& value, Value old) const;

  std::chrono::steady_clock::duration spin_;
  // The high half counts loops, the low half the tasks not yet taken. A task is taken by decrementing, which
  // fails when the loop has changed; `loop_` is written only while no task is taken or running.
  std::atomic<std::uint64_t> state_{0};
  std::atomic<int> unfinished_{0};
  std::atomic<int> failure_{0};
  ParallelLoop loop_;
};

}  // namespace sylvite
