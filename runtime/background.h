#pragma once
// What is made in a thread of its own while the caller goes on.

#include <sys/resource.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/fork.h"

namespace sylvite {

/// Thread safety: one thread at a time. A child made by fork has no such thread: there it is never ready.
template <typename Result>
class Background {
 public:
  /// `make` runs in a thread of low priority, which the processes that it starts inherit: of a core that both want, the
  /// caller gets three quarters. Where the token asks for it, it throws Stopped soon. Forks wait for its fork points.
  explicit Background(std::function<Result(const std::stop_token&)> make)
      : making_(std::make_unique<Making>()) {
    making_->thread =
        std::jthread([making = making_.get(), make = std::move(make)](const std::stop_token& stop) {
          constexpr int niceness = 5;
          static_cast<void>(::setpriority(PRIO_PROCESS, 0, niceness));  // 0: this thread
          const NoFork no_fork;
          try {
            making->result = make(stop);
            making->promise.set_value();
          } catch (...) {
            making->promise.set_exception(std::current_exception());
          }
        });
  }
  /// Stops it, and waits until it has.
  ~Background() {
    if (is_mine()) return;
    making_->thread.detach();
    static_cast<void>(making_.release());  // what a thread of another process left half made stays
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// Asks for an end, and waits for it.
  void stop() {
    if (!is_mine() || !making_->thread.joinable()) return;
    making_->thread.request_stop();
    making_->thread.join();
  }
  [[nodiscard]] bool is_ready() const {  ///< or has failed
    return making_->done.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  [[nodiscard]] bool is_mine() const {
    return ::getpid() == making_->process;
  }  ///< not in a child made by fork
  /// Until it is ready; returns at once in a child made by fork.
  void wait() const {
    if (is_mine()) making_->done.wait();
  }
  /// Waits. Throws what `make` threw, every time, and UsageError in a child made by fork. REQUIRES that it was not taken.
  [[nodiscard]] Result take() {
    if (!is_ready() && !is_mine())
      throw UsageError(
          "the model was still being compiled when this process was forked, and is not here: compile it "
          "anew");
    making_->done.get();
    return std::move(*making_->result);
  }

 private:
  struct Making {
    std::optional<Result> result;  ///< once `done`
    std::promise<void> promise;
    std::shared_future<void> done = promise.get_future().share();
    pid_t process = ::getpid();
    std::jthread thread;  ///< last: it ends before what it writes
  };

  std::unique_ptr<Making> making_;
};

}  // namespace sylvite
