#pragma once
// What a running kernel is given besides its buffers: how many threads, and a place for its error message.
// Parallel loops of kernels run on OpenMP workers: one pool per process, whatever the number of programs.

#include <cstdint>
#include <mutex>
#include <string>

namespace sylvite {

/// Passed to kernels as Halide's user_context. Lives at least as long as the call. Thread safety: message
/// functions are safe from any worker.
class RunContext {
 public:
  explicit RunContext(int threads) : threads_(threads) {}

  [[nodiscard]] int threads() const { return threads_; }
  void record_error(const char* message);  ///< the first message is kept: later ones are its consequences
  [[nodiscard]] std::string take_error();  ///< and forgets it

 private:
  int threads_;
  std::mutex mutex_;
  std::string message_;
};

/// Halide's parallel loop: calls task(user_context, i, closure) for i in [first, first + count), in any
/// order, on up to RunContext::threads() workers. Loops inside loops run serially. Returns 0, or the first
/// non-zero result.
int parallel_for(void* user_context, int (*task)(void*, int, std::uint8_t*), int first, int count,
                 std::uint8_t* closure);

/// Halide's error handler: records the message in the RunContext instead of ending the process.
void report_kernel_error(void* user_context, const char* message);

}  // namespace sylvite
