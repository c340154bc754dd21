#include "runtime/worker_team.h"

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

}  // namespace

WorkerTeam::WorkerTeam(double spin_seconds)
    : spin_(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
          std::chrono::duration<double>(spin_seconds))) {}

bool WorkerTeam::in_task() {
  return is_in_task;
}

/// Returns once `value` is no longer `old`: spins, then sleeps.
template <typename Value>
void WorkerTeam::await_change(const std::atomic<Value>& value, Value old) const {
  constexpr int looks_between_clocks = 64;
  const auto give_up = std::chrono::steady_clock::now() + spin_;
  do {
    for (int i = 0; i < looks_between_clocks; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      relax();
    }
  } while (std::chrono::steady_clock::now() < give_up);
  value.wait(old, std::memory_order_acquire);
}

/// Takes one task and does it. False when the loop in `state` has none left, or is over.
bool WorkerTeam::work_on(std::uint64_t state) {
  const std::uint64_t loop_number = state / one_loop;
  while ((state & task_mask) != 0) {
    if (!state_.compare_exchange_weak(state, state - 1, std::memory_order_acq_rel)) {
      if (state / one_loop != loop_number) return false;
      continue;
    }
    const int index = loop_.first + loop_.count - static_cast<int>(state & task_mask);
    if (failure_.load(std::memory_order_relaxed) == 0) {
      is_in_task = true;
      const int result = loop_.task(loop_.user_context, index, loop_.closure);
      is_in_task = false;
      if (result != 0) failure_.store(result, std::memory_order_relaxed);
    }
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
    return true;
  }
  return false;
}

int WorkerTeam::run(const ParallelLoop& loop) {
  if (loop.count <= 0) return 0;
  loop_ = loop;
  failure_.store(0, std::memory_order_relaxed);
  unfinished_.store(loop.count, std::memory_order_relaxed);
  const std::uint64_t next_loop = (state_.load(std::memory_order_relaxed) / one_loop + 1) % (task_mask - 1);
  const std::uint64_t state = next_loop * one_loop + static_cast<std::uint64_t>(loop.count);
  state_.store(state, std::memory_order_release);
  state_.notify_all();
  while (work_on(state_.load(std::memory_order_acquire))) {
  }
  for (int left = unfinished_.load(std::memory_order_acquire); left != 0;
       left = unfinished_.load(std::memory_order_acquire)) {
    await_change(unfinished_, left);
  }
  return failure_.load(std::memory_order_relaxed);
}

void WorkerTeam::serve() {
  for (std::uint64_t state = state_.load(std::memory_order_acquire); state != stopped;
       state = state_.load(std::memory_order_acquire)) {
    if (!work_on(state) && (state & task_mask) == 0) await_change(state_, state);
  }
}

void WorkerTeam::stop() {
  state_.store(stopped, std::memory_order_release);
  state_.notify_all();
}

}  // namespace sylvite
