#pragma once
// Compiles a candidate of a kernel, gives it buffers, and times it against the core's multiply-add rate.

#include <HalideRuntime.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/fma_peak.h"
#include "lowering/algorithm.h"
#include "lowering/halide_types.h"
#include "runtime/object_loader.h"
#include "runtime/threads.h"
#include "schedules/candidate.h"
#include "schedules/compile.h"

namespace sylvite::bench {

/// A compiled candidate and its arguments, filled with small random numbers.
class RunnableKernel {
 public:
  RunnableKernel(const Kernel& kernel, const Candidate& candidate, const Machine& machine)
      : context_(machine.threads) {
    const double start = seconds_now();
    const std::string object = compile_to_object(kernel, candidate, machine.target);
    compile_seconds_ = seconds_now() - start;
    entry_ = loader_.load(object, symbol_name(kernel, candidate, machine.target));
    const std::vector<Packing> packings = input_packings(kernel, candidate.form);
    for (std::size_t i = 0; i < kernel.body.inputs.size(); ++i) {
      const TensorType& type = kernel.body.type(kernel.body.inputs[i]);
      add(type.dtype, packings[i].is_identity() ? type.storage_dims() : packings[i].packed_dims(type.dims()));
    }
    for (const ValueId id : kernel.body.outputs)
      add(kernel.body.type(id).dtype, kernel.body.type(id).storage_dims());
    user_context_ = &context_;
    arguments_.push_back(&user_context_);
    for (halide_buffer_t& buffer : buffers_) arguments_.push_back(&buffer);
  }
  RunnableKernel(const RunnableKernel&) = delete;
  RunnableKernel& operator=(const RunnableKernel&) = delete;

  /// Throws CompileError with the kernel's own message when it fails.
  void run() {
    if (entry_(arguments_.data()) != 0) throw CompileError("the kernel failed: {}", context_.take_error());
  }
  /// A clock for run(): with one thread its processor time, so that preemption on a shared machine does not
  /// count.
  [[nodiscard]] double seconds() const {
    if (context_.threads() > 1) return seconds_now();
    timespec now = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }
  [[nodiscard]] double compile_seconds() const { return compile_seconds_; }

 private:
  void add(DType dtype, const Dims& stored) {
    Tensor tensor(dtype, stored);
    std::mt19937 generator(static_cast<unsigned>(tensors_.size()) + 1);
    if (dtype == DType::f32) {
      for (float& value : tensor.mutable_view<float>())
        value = static_cast<float>(generator() % 64) / 64.0F - 0.5F;
    }
    const auto rank = static_cast<int>(stored.size());
    std::vector<halide_dimension_t>& dims = dims_.emplace_back(stored.size());
    int stride = 1;
    for (int d = 0; d < rank; ++d) {
      const auto extent = static_cast<int>(stored[static_cast<std::size_t>(rank - 1 - d)]);
      dims[static_cast<std::size_t>(d)] = halide_dimension_t(0, extent, stride);
      stride *= extent;
    }
    halide_buffer_t buffer = {};
    buffer.host = static_cast<std::uint8_t*>(tensor.mutable_data());
    buffer.type = halide_type_of(dtype);
    buffer.dimensions = rank;
    buffer.dim = dims.data();
    tensors_.push_back(std::move(tensor));
    buffers_.push_back(buffer);
  }

  ObjectLoader loader_;
  RunContext context_;
  KernelArgv entry_ = nullptr;
  double compile_seconds_ = 0;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<halide_dimension_t>> dims_;
  std::vector<halide_buffer_t> buffers_;
  void* user_context_ = nullptr;
  std::vector<void*> arguments_;
};

struct Timing {
  double seconds = 1e30;  ///< the best run
  double peak = 0;        ///< the best multiply-add rate seen between the runs, for one core
};

/// Alternates runs and measurements of the peak for about `budget` seconds.
inline Timing time_kernel(RunnableKernel& kernel, double budget) {
  Timing timing;
  kernel.run();
  const double start = seconds_now();
  do {
    timing.peak = std::max(timing.peak, fma_rate());
    const double slice = seconds_now();
    do {
      const double before = kernel.seconds();
      kernel.run();
      timing.seconds = std::min(timing.seconds, kernel.seconds() - before);
    } while (seconds_now() - slice < 0.01);
  } while (seconds_now() - start < budget);
  return timing;
}

}  // namespace sylvite::bench
