#include "runtime/threads.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include "runtime/repeated_run.h"
#include "runtime/worker_team.h"

namespace sylvite {
namespace {

/// The team that the calling thread leads.
thread_local WorkerTeam* led_team = nullptr;

/// Where the calling thread's RepeatedRun notes that a loop was to be shared.
thread_local bool* met_loop = nullptr;

/// This process was forked from one that had asked for workers.
std::atomic<bool> workers_are_lost = false;

void lead(WorkerTeam& team, const std::function<void()>& body, std::exception_ptr& failure) {
  led_team = &team;
  try {
    body();
  } catch (...) {
    failure = std::current_exception();
  }
  led_team = nullptr;
  team.stop();
}

}  // namespace

void RunContext::record_error(const char* message) {
  const std::lock_guard lock(mutex_);
  if (message_.empty()) message_ = message;
}

std::string RunContext::take_error() {
  const std::lock_guard lock(mutex_);
  return std::exchange(message_, "");
}

int usable_threads(int wanted) {
  if (wanted <= 1) return 1;
  static std::once_flag watched;
  std::call_once(watched, [] { ::pthread_atfork(nullptr, nullptr, [] { workers_are_lost = true; }); });
  return workers_are_lost ? 1 : wanted;
}

void with_workers(int threads, double spin_seconds, const std::function<void()>& body) {
  threads = usable_threads(threads);
  if (threads <= 1 || led_team != nullptr || omp_in_parallel() != 0) {
    body();
    return;
  }
  WorkerTeam team(threads, spin_seconds);
  std::exception_ptr failure;
#pragma omp parallel num_threads(threads)
  {
    if (omp_get_thread_num() == 0)
      lead(team, body, failure);
    else
      team.serve(omp_get_thread_num());
  }
  if (failure) std::rethrow_exception(failure);
}

void RepeatedRun::run(const std::function<void()>& body) {
  bool has_loops = false;
  bool* const before = std::exchange(met_loop, &has_loops);
  try {
    with_workers(had_loops_ ? threads_ : 1, spin_seconds_, body);
  } catch (...) {
    met_loop = before;
    throw;
  }
  met_loop = before;
  had_loops_ = has_loops;
}

int parallel_for(void* user_context, int (*task)(void*, int, std::uint8_t*), int first, int count,
                 std::uint8_t* closure) {
  const auto* context = static_cast<const RunContext*>(user_context);
  const int threads = context != nullptr ? usable_threads(std::min(context->threads(), count)) : 1;
  if (threads > 1 && met_loop != nullptr) *met_loop = true;
  const ParallelLoop loop{user_context, task, first, count, closure};
  if (threads > 1 && led_team == nullptr && !WorkerTeam::in_task() && omp_in_parallel() == 0) {
    int result = 0;
    with_workers(threads, default_spin_seconds, [&] { result = led_team->run(loop); });
    return result;
  }
  if (threads > 1 && led_team != nullptr && !WorkerTeam::in_task()) return led_team->run(loop);
  for (int i = first; i < first + count; ++i)
    if (const int status = task(user_context, i, closure); status != 0) return status;
  return 0;
}

void report_kernel_error(void* user_context, const char* message) {
  if (user_context != nullptr) static_cast<RunContext*>(user_context)->record_error(message);
}

}  // namespace sylvite
