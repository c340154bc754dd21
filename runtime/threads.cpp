#include "runtime/threads.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace sylvite {

void RunContext::record_error(const char* message) {
  const std::lock_guard lock(mutex_);
  if (message_.empty()) message_ = message;
}

std::string RunContext::take_error() {
  const std::lock_guard lock(mutex_);
  return std::exchange(message_, "");
}

int parallel_for(void* user_context, int (*task)(void*, int, std::uint8_t*), int first, int count,
                 std::uint8_t* closure) {
  const auto* context = static_cast<const RunContext*>(user_context);
  const int threads = context == nullptr || omp_in_parallel() != 0 ? 1 : std::min(context->threads(), count);
  if (threads <= 1) {
    for (int i = first; i < first + count; ++i) {
      if (const int status = task(user_context, i, closure); status != 0) return status;
    }
    return 0;
  }
  std::atomic<int> failure{0};
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (int i = first; i < first + count; ++i) {
    if (failure.load(std::memory_order_relaxed) != 0) continue;
    const int status = task(user_context, i, closure);
    if (status != 0) failure.store(status, std::memory_order_relaxed);
  }
  return failure.load();
}

void report_kernel_error(void* user_context, const char* message) {
  if (user_context != nullptr) static_cast<RunContext*>(user_context)->record_error(message);
}

}  // namespace sylvite
