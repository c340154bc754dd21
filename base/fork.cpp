#include "base/fork.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace sylvite {
namespace {

std::mutex gate;              // held by a fork, and for a moment by who begins
std::atomic<int> inside = 0;  // threads with a NoFork
thread_local int depth = 0;   // NoForks of this thread

void begin() {
  const std::lock_guard lock(gate);
  ++inside;
}

/// A thread that forks is at a point where it may.
void before_fork() {
  constexpr std::chrono::microseconds pause(50);
  if (depth > 0) --inside;
  gate.lock();
  const double until = steady_seconds() + fork_patience_seconds;
  while (inside > 0 && steady_seconds() < until) std::this_thread::sleep_for(pause);
}

void in_parent() {
  if (depth > 0) ++inside;
  gate.unlock();
}

void in_child() {
  inside = depth > 0 ? 1 : 0;
  gate.unlock();
}

[[maybe_unused]] const int registered = ::pthread_atfork(before_fork, in_parent, in_child);

}  // namespace

NoFork::NoFork() {
  if (depth == 0) begin();
  ++depth;
}

NoFork::~NoFork() {
  if (--depth == 0) --inside;
}

ForkPoint::ForkPoint() : depth_(std::exchange(depth, 0)) {
  if (depth_ > 0) --inside;
}

ForkPoint::~ForkPoint() {
  if (depth_ > 0) begin();
  depth = depth_;
}

}  // namespace sylvite
