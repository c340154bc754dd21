#include "runtime/threads.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/worker_team.h"

namespace sylvite {
namespace {

/// This process was forked from one that had asked for workers.
std::atomic<bool> workers_are_lost = false;

/// The teams of one leader, by their numbers of members. Their threads sleep between runs and end when their leader does; no
/// run waits for one that has no task.
class Teams {
 public:
  Teams() = default;
  ~Teams() {
    for (const auto& [members, team] : teams_) team->stop();
  }
  Teams(const Teams&) = delete;
  Teams& operator=(const Teams&) = delete;

  WorkerTeam& of(int members, double spin_seconds) {
    const auto found = std::ranges::find(teams_, members, [](const auto& entry) { return entry.first; });
    if (found != teams_.end()) {
      found->second->set_spin(spin_seconds);
      return *found->second;
    }
    const auto team = std::make_shared<WorkerTeam>(members, spin_seconds);
    teams_.emplace_back(members, team);
    try {
      for (int member = 1; member < members; ++member)
        std::thread([team, member] { team->serve(member); }).detach();
    } catch (const std::system_error&) {  // no more threads: those that are there do the work
    }
    return *team;
  }

 private:
  std::vector<std::pair<int, std::shared_ptr<WorkerTeam>>> teams_;
};

thread_local Teams own_teams;

/// A with_workers of the calling thread. Its team is there from its first loop on.
struct Leading {
  int threads;
  double spin_seconds;
  WorkerTeam* team = nullptr;
};
thread_local Leading* leading = nullptr;

/// Puts the variable back, whatever happens.
class Restored {
 public:
  explicit Restored(Leading& now) : before_(std::exchange(leading, &now)) {}
  ~Restored() { leading = before_; }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

 private:
  Leading* before_;
};

int run_on_team(Leading& now, const ParallelLoop& loop) {
  if (now.team == nullptr) now.team = &own_teams.of(now.threads, now.spin_seconds);
  return now.team->run(loop);
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
  if (threads <= 1 || leading != nullptr || omp_in_parallel() != 0) {
    body();
    return;
  }
  Leading now{threads, spin_seconds};
  const Restored restored(now);
  body();
}

int parallel_for(void* user_context, int (*task)(void*, int, std::uint8_t*), int first, int count,
                 std::uint8_t* closure) {
  const auto* context = static_cast<const RunContext*>(user_context);
  const int threads = context != nullptr ? usable_threads(std::min(context->threads(), count)) : 1;
  if (threads > 1 && !WorkerTeam::in_task() && omp_in_parallel() == 0) {
    const ParallelLoop loop{user_context, task, first, count, closure};
    if (leading != nullptr) return run_on_team(*leading, loop);
    Leading now{threads, default_spin_seconds};
    return run_on_team(now, loop);
  }
  for (int i = first; i < first + count; ++i)
    if (const int status = task(user_context, i, closure); status != 0) return status;
  return 0;
}

void report_kernel_error(void* user_context, const char* message) {
  if (user_context != nullptr) static_cast<RunContext*>(user_context)->record_error(message);
}

}  // namespace sylvite
