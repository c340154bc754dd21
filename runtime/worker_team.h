#pragma once
// One loop at a time, shared out to threads that wait for it. The mechanism under with_workers.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sylvite {

/// A parallel loop as Halide gives it.
struct ParallelLoop {
  void* user_context = nullptr;
  int (*task)(void*, int, std::uint8_t*) = nullptr;
  int first = 0;
  int count = 0;
  std::uint8_t* closure = nullptr;
};

/// One thread leads: it calls run() as often as it likes, then stop(). The others call serve(), each as another member from 1 on,
/// whenever they come: nobody waits for them. Without others the leader does all work.
///
/// Each member has a share of a loop's tasks, in one piece, and takes tasks of others when its own are done.
/// So a member walks the same part of the image in one kernel after another, and finds in its own cache most
/// of what it reads.
///
/// Where other programs run, the system may put a worker on the processor of the leader. Both wait for each other by
/// spinning, so that a handover could take the system's whole slice of time: such a worker moves to another processor.
class WorkerTeam {
 public:
  WorkerTeam(int members, double spin_seconds);

  /// How long members spin before they sleep, from now on. For the leader.
  void set_spin(double seconds);
  /// Returns when every task has ended: 0, or the result of one that failed.
  int run(const ParallelLoop& loop);
  void serve(int member);  ///< works on loops until stop()
  void stop();

  /// Whether the calling thread is in a task: its loops must run serially.
  [[nodiscard]] static bool in_task();

 private:
  /// The high half is the number of the loop, the low half the tasks not yet taken. A task is taken by
  /// decrementing, which fails when the loop has changed.
  struct alignas(64) Share {
    std::atomic<std::uint64_t> left{0};
  };

  void leave_leader() const;
  void work_on(std::uint64_t loop_number, int member);
  int drain(std::uint64_t loop_number, std::size_t share);
  [[nodiscard]] int share_end(std::size_t share) const;
  template <typename Value>
  void await_change(const std::atomic<Value>& value, Value old) const;

  std::atomic<std::int64_t> spin_nanoseconds_;
  std::vector<Share> shares_;  ///< one per member; written before number_ and after the last loop's tasks
  std::atomic<std::uint64_t> number_{0};  ///< of the loop to work on
  std::atomic<int> leader_processor_;     ///< where the leader was when it began its last loop
  std::atomic<int> unfinished_{0};
  std::atomic<int> failure_{0};
  ParallelLoop loop_;  ///< written only while no task is taken or running
};

}  // namespace sylvite
