#pragma once
// What a running kernel is given besides its buffers: how many threads, and a place for its error message.
// Parallel loops of kernels run on threads of ours that each thread which runs programs has beside it, whatever the number of
// programs. No run waits for a worker that the system does not run: OpenMP's regions do at their end.

#include <cstdint>
#include <functional>
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

/// How many threads may be used: `wanted`, or 1 in a child, made by fork, of a process that used several. The workers are
/// not there.
[[nodiscard]] int usable_threads(int wanted);

/// How long an idle worker, or a loop that waits for its last tasks, spins before it sleeps.
inline constexpr double default_spin_seconds = 5e-5;

/// Runs `body` on the calling thread, which shares the parallel loops of the kernels it calls with usable_threads(threads) - 1
/// workers. These spin between loops, and sleep when none comes. Exceptions of `body` pass through. Inside another
/// with_workers, or inside somebody's OpenMP region, it only runs `body`.
void with_workers(int threads, double spin_seconds, const std::function<void()>& body);

/// Halide's parallel loop: calls task(user_context, i, closure) for i in [first, first + count), in any
/// order: on the workers of with_workers, outside of it on up to RunContext::threads() threads. Loops inside
/// loops run serially. Returns 0, or the result of a task that failed; the tasks not yet begun are then
/// skipped.
int parallel_for(void* user_context, int (*task)(void*, int, std::uint8_t*), int first, int count,
                 std::uint8_t* closure);

/// Halide's error handler: records the message in the RunContext instead of ending the process.
void report_kernel_error(void* user_context, const char* message);

}  // namespace sylvite
