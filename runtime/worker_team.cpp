#include "runtime/worker_team.h"

#include <sched.h>

#include <algorithm>
#include <chrono>

namespace sylvite {
namespace {

constexpr std::uint64_t one_loop = std::uint64_t{1} << 32;
constexpr std::uint64_t task_mask = one_loop - 1;
constexpr std::uint64_t stopped = ~std::uint64_t{0};

thread_local bool is_in_task = false;

/// Tells the processor that this is a waiting loop.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Moves the calling thread off a processor, where it may use another.
void leave_processor(int processor) {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) == 0 || ::sched_setaffinity(0, sizeof others, &others) != 0) return;
  ::sched_setaffinity(0, sizeof allowed, &allowed);
}

}  // namespace

WorkerTeam::WorkerTeam(int members, double spin_seconds)
    : shares_(static_cast<std::size_t>(std::max(1, members))), leader_processor_(::sched_getcpu()) {
  set_spin(spin_seconds);
}

void WorkerTeam::set_spin(double seconds) {
  spin_nanoseconds_.store(static_cast<std::int64_t>(seconds * 1e9), std::memory_order_relaxed);
}

bool WorkerTeam::in_task() {
  return is_in_task;
}

/// Returns once `value` is no longer `old`: spins, then sleeps.
template <typename Value>
void WorkerTeam::await_change(const std::atomic<Value>& value, Value old) const {
  constexpr int looks_between_clocks = 64;
  const std::chrono::nanoseconds spin(spin_nanoseconds_.load(std::memory_order_relaxed));
  const auto give_up = std::chrono::steady_clock::now() + spin;
  do {
    for (int i = 0; i < looks_between_clocks; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      relax();
    }
  } while (std::chrono::steady_clock::now() < give_up);
  value.wait(old, std::memory_order_acquire);
}

/// One past the last task of a share, counted from the loop's first.
int WorkerTeam::share_end(std::size_t share) const {
  const auto members = static_cast<std::int64_t>(shares_.size());
  return static_cast<int>(loop_.count * (static_cast<std::int64_t>(share) + 1) / members);
}

/// Takes tasks of a share and does them until none is left, or the loop is another. Returns how many.
int WorkerTeam::drain(std::uint64_t loop_number, std::size_t share) {
  std::atomic<std::uint64_t>& tasks = shares_[share].left;
  int done = 0;
  std::uint64_t left = tasks.load(std::memory_order_acquire);
  while (left / one_loop == loop_number && (left & task_mask) != 0) {
    if (!tasks.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel)) continue;
    const int index = loop_.first + share_end(share) - static_cast<int>(left & task_mask);
    if (failure_.load(std::memory_order_relaxed) == 0) {
      is_in_task = true;
      const int result = loop_.task(loop_.user_context, index, loop_.closure);
      is_in_task = false;
      if (result != 0) failure_.store(result, std::memory_order_relaxed);
    }
    ++done;
    left = tasks.load(std::memory_order_acquire);
  }
  return done;
}

/// The member's own share, then those of the others. Tells of its tasks once: `unfinished_` is everybody's.
void WorkerTeam::work_on(std::uint64_t loop_number, int member) {
  int done = 0;
  for (std::size_t i = 0; i < shares_.size(); ++i)
    done += drain(loop_number, (static_cast<std::size_t>(member) + i) % shares_.size());
  if (done > 0 && unfinished_.fetch_sub(done, std::memory_order_acq_rel) == done) unfinished_.notify_one();
}

int WorkerTeam::run(const ParallelLoop& loop) {
  if (loop.count <= 0) return 0;
  loop_ = loop;
  failure_.store(0, std::memory_order_relaxed);
  leader_processor_.store(::sched_getcpu(), std::memory_order_relaxed);
  unfinished_.store(loop.count, std::memory_order_relaxed);
  const std::uint64_t number = (number_.load(std::memory_order_relaxed) + 1) % (task_mask - 1);
  int begin = 0;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const int end = share_end(i);
    shares_[i].left.store(number * one_loop + static_cast<std::uint64_t>(end - begin),
                          std::memory_order_release);
    begin = end;
  }
  number_.store(number, std::memory_order_release);
  number_.notify_all();
  work_on(number, 0);
  for (int left = unfinished_.load(std::memory_order_acquire); left != 0;
       left = unfinished_.load(std::memory_order_acquire)) {
    await_change(unfinished_, left);
  }
  return failure_.load(std::memory_order_relaxed);
}

/// A worker on the leader's processor takes time from it and gives it nothing.
void WorkerTeam::leave_leader() const {
  const int processor = leader_processor_.load(std::memory_order_relaxed);
  if (processor >= 0 && processor < CPU_SETSIZE && processor == ::sched_getcpu()) leave_processor(processor);
}

void WorkerTeam::serve(int member) {
  leave_leader();
  for (std::uint64_t number = number_.load(std::memory_order_acquire); number != stopped;
       number = number_.load(std::memory_order_acquire)) {
    work_on(number, member);
    await_change(number_, number);
    leave_leader();
  }
}

void WorkerTeam::stop() {
  number_.store(stopped, std::memory_order_release);
  number_.notify_all();
}

}  // namespace sylvite
