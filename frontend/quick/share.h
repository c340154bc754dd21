#pragma once
// Work in threads that live as long as one operation: runs by evaluation are few, and nothing of them stays.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace sylvite::quick {

/// Calls body(task) for each task of [0, count), in any order, in up to `threads` threads: one for each `worth` of
/// `work`. Throws what a task throws, once all have ended.
template <typename Body>
void share_out(std::int64_t count, double work, int threads, const Body& body) {
  constexpr double worth = 1e6;  // simple steps: some times what it takes to start a thread
  const auto wanted = static_cast<std::int64_t>(std::min(work / worth, 1e6)) + 1;
  const std::int64_t used = std::min({count, wanted, static_cast<std::int64_t>(std::max(threads, 1))});
  std::atomic<std::int64_t> next = 0;
  std::exception_ptr failure;
  std::mutex failing;
  const auto take_tasks = [&] {
    try {
      for (std::int64_t task = next++; task < count; task = next++) body(task);
    } catch (...) {
      const std::lock_guard lock(failing);
      failure = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::int64_t i = 1; i < used; ++i) helpers.emplace_back(take_tasks);
    take_tasks();
  }
  if (failure) std::rethrow_exception(failure);
}

/// The same for parts [begin, end) of a range of elements, of `steps` each.
template <typename Body>
void share_elements(std::int64_t count, double steps, int threads, const Body& body) {
  constexpr std::int64_t part = 1 << 14;
  share_out((count + part - 1) / part, static_cast<double>(count) * steps, threads,
            [&](std::int64_t i) { body(i * part, std::min(count, (i + 1) * part)); });
}

}  // namespace sylvite::quick
