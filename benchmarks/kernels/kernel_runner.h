#pragma once
// Compiles a candidate of a kernel, gives it buffers, and times it against the core's multiply-add rate.

#include <time.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "autotune/random_inputs.h"
#include "base/clock.h"
#include "runtime/kernel_runner.h"
#include "runtime/product_rates.h"
#include "schedules/compile.h"
#include "schedules/space.h"

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

/// Turns of 10 ms of each kernel and of the peak's measurement, by `rate`, for `budget` seconds a kernel: one
/// timing per kernel, comparable on a machine whose clock changes. All have the same peak.
inline std::vector<Timing> time_kernels(std::vector<std::unique_ptr<RunnableKernel>>& kernels, double budget,
                                        double (*rate)() = fma_rate) {
  std::vector<Timing> timings(kernels.size());
  for (const auto& kernel : kernels) kernel->run();
  double peak = 0;
  const double start = steady_seconds();
  do {
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      peak = std::max(peak, rate());
      const double slice = steady_seconds();
      do {
        const double before = kernels[i]->seconds();
        kernels[i]->run();
        timings[i].seconds = std::min(timings[i].seconds, kernels[i]->seconds() - before);
      } while (steady_seconds() - slice < 0.01);
    }
  } while (steady_seconds() - start < budget * static_cast<double>(kernels.size()));
  for (Timing& timing : timings) timing.peak = peak;
  return timings;
}

}  // namespace sylvite::bench
