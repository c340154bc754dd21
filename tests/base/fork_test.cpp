#include "base/fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <mutex>
#include <thread>

#include "base/clock.h"

namespace sylvite::fork_test {
namespace {

using std::chrono::milliseconds;

/// What a child tells of itself.
bool is_true_in_child(const std::function<bool()>& says) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(says() ? 0 : 1);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// A thread that holds a lock nearly always, and lets forks through in between.
class BusyThread {
 public:
  explicit BusyThread(std::mutex& lock) : thread_([this, &lock] { work(lock); }) { begun_.wait(); }
  ~BusyThread() { is_over_ = true; }
  BusyThread(const BusyThread&) = delete;
  BusyThread& operator=(const BusyThread&) = delete;

 private:
  void work(std::mutex& lock) {
    const NoFork no_fork;
    begun_.count_down();
    while (!is_over_) {
      {
        const std::lock_guard held(lock);
        std::this_thread::sleep_for(milliseconds(5));
      }
      const ForkPoint between;
    }
  }

  std::atomic<bool> is_over_ = false;
  std::latch begun_{1};
  std::jthread thread_;
};

TEST(NoForkTest, ChildrenFindNoLockOfOtherThreads) {
  std::mutex lock;
  const BusyThread first(lock);
  const BusyThread second(lock);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(is_true_in_child([&] {
      const NoFork no_fork;
      return lock.try_lock();
    }));
    std::this_thread::sleep_for(milliseconds(i % 7));
  }
}

TEST(NoForkTest, OwnForksGoThrough) {
  std::mutex lock;
  const BusyThread other(lock);
  const NoFork no_fork;
  const NoFork again;
  EXPECT_TRUE(is_true_in_child([&] {
    const ForkPoint here;
    return lock.try_lock();
  }));
}

TEST(NoForkTest, ThreadsThatForkDoNotWaitForEachOther) {
  constexpr int times = 20;
  const double start = steady_seconds();
  std::atomic<int> right = 0;
  {
    const auto forks = [&] {
      const NoFork no_fork;
      for (int i = 0; i < times; ++i)
        if (is_true_in_child([] { return true; })) ++right;
    };
    const std::jthread first(forks);
    const std::jthread second(forks);
  }
  EXPECT_EQ(right, 2 * times);
  EXPECT_LT(steady_seconds() - start, times * fork_patience_seconds);
}

}  // namespace
}  // namespace sylvite::fork_test
