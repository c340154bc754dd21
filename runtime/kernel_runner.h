#pragma once
// One compiled candidate with buffers of its own, ready to be called again and again.

#include <memory>
#include <string>
#include <vector>

#include "lowering/plan/kernel.h"
#include "runtime/cold_weights.h"
#include "runtime/cuda/device_kernel.h"
#include "runtime/kernel_call.h"
#include "schedules/candidate.h"

namespace sylvite {

/// Thread safety: one thread at a time.
class KernelRunner {
 public:
  /// `inputs` as random_inputs makes them; those that are weights come from `weights`, packed as the
  /// candidate wants, another copy in every call. `weights` must outlive the runner. Throws IoError when the
  /// object does not load.
  KernelRunner(const Kernel& kernel, const Candidate& candidate, const std::string& object,
               const std::string& target, const std::vector<Tensor>& inputs, ColdWeights& weights,
               int threads);
  KernelRunner(const KernelRunner&) = delete;
  KernelRunner& operator=(const KernelRunner&) = delete;

  ~KernelRunner();

  /// Throws VerifyError with Halide's message when the kernel reports an error. On the GPU, returns before
  /// the kernel ends.
  void call();
  /// Microseconds of the GPU for one call, the mean of at least this many in a row; 0 for kernels of the CPU.
  [[nodiscard]] double time_on_device(int calls);
  [[nodiscard]] const std::vector<Tensor>& outputs();  ///< as stored, of the last call
  /// Overwrites the outputs, as they are before the first call: elements that a kernel does not write must not pass for
  /// results.
  void poison_outputs();

 private:
  halide_buffer_t& add_buffer(const Kernel& kernel, ValueId id, const Packing& packing, const void* data);
  void prepare_on_device();
  void use_next_weights();

  struct Weight {
    halide_buffer_t* buffer = nullptr;
    const ColdWeights::Copies* copies = nullptr;
  };

  ObjectLoader loader_;
  RunContext context_;
  KernelCall call_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  ColdWeights& cold_;
  std::vector<Weight> weights_;
  std::unique_ptr<cuda::DeviceKernel> device_;  ///< none: the kernel runs on the CPU
};

}  // namespace sylvite
