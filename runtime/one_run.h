#pragma once
// Models run for one thread at a time.

#include <atomic>

#include "base/error.h"

namespace sylvite {

/// Keeps other threads out of a model while it lives: they get UsageError.
class OneRun {
 public:
  explicit OneRun(std::atomic_flag& busy) : busy_(busy) {
    if (busy_.test_and_set(std::memory_order_acquire))
      throw UsageError("another thread is running this model; compile one for each thread, or take turns");
  }
  ~OneRun() { busy_.clear(std::memory_order_release); }
  OneRun(const OneRun&) = delete;
  OneRun& operator=(const OneRun&) = delete;

 private:
  std::atomic_flag& busy_;
};

}  // namespace sylvite
