#pragma once
// Compiles a candidate of a kernel, gives it buffers, and times it against the core's multiply-add rate.

#include <time.h>

#include <algorithm>
#include <string>
#include <vector>

#include "autotune/random_inputs.h"
#include "benchmarks/fma_peak.h"
#include "runtime/kernel_runner.h"
#include "schedules/candidate.h"
#include "schedules/compile.h"

namespace sylvite::bench {

/// A compiled candidate and its arguments, random. With cold weights each run reads its own copy from memory,
/// as in a model; else all read the same one.
class RunnableKernel {
 public:
  RunnableKernel(const Kernel& kernel, const Candidate& candidate, const Machine& machine, bool cold)
      : threads_(machine.threads),
        inputs_(random_inputs(kernel)),
        weights_(inputs_, cold ? ColdWeights::default_cycle_bytes : 0),
        start_(steady_seconds()),
        object_(compile_to_object(kernel, candidate, machine.target)),
        compile_seconds_(steady_seconds() - start_),
        runner_(kernel, candidate, object_, machine.target, inputs_, weights_, machine.threads) {}

  void run() { runner_.call(); }
  /// A clock for run(): with one thread its processor time, so that preemption on a shared machine does not
  /// count.
  [[nodiscard]] double seconds() const {
    if (threads_ > 1) return steady_seconds();
    timespec now = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }
  [[nodiscard]] double compile_seconds() const { return compile_seconds_; }

 private:
  int threads_;
  std::vector<Tensor> inputs_;
  ColdWeights weights_;
  double start_;
  std::string object_;
  double compile_seconds_;
  KernelRunner runner_;
};

struct Timing {
  double seconds = 1e30;  ///< the best run
  double peak = 0;        ///< the best multiply-add rate seen between the runs, for one core
};

/// Alternates runs and measurements of the peak, by `rate`, for about `budget` seconds.
inline Timing time_kernel(RunnableKernel& kernel, double budget, double (*rate)() = fma_rate) {
  Timing timing;
  kernel.run();
  const double start = steady_seconds();
  do {
    timing.peak = std::max(timing.peak, rate());
    const double slice = steady_seconds();
    do {
      const double before = kernel.seconds();
      kernel.run();
      timing.seconds = std::min(timing.seconds, kernel.seconds() - before);
    } while (steady_seconds() - slice < 0.01);
  } while (steady_seconds() - start < budget);
  return timing;
}

}  // namespace sylvite::bench
