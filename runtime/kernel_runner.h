#pragma once
// One compiled candidate with buffers of its own, ready to be called again and again.

#include <HalideRuntime.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cold_weights.h"
#include "runtime/object_loader.h"
#include "runtime/threads.h"
#include "schedules/candidate.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// Thread safety: one thread at a time.
class KernelRunner {
 public:
  /// `inputs` as random_inputs makes them; those that are weights come from `weights`, packed as the
  /// candidate wants, another copy in every call. `weights` must outlive the runner. Throws IoError when the
  /// object does not link.
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

 private:
  void prepare_on_device(const std::optional<CudaTemplate>& text, const std::string& object);
  void add_buffer(DType dtype, const Dims& dims, const void* data);
  void use_next_weights();

  struct Weight {
    std::size_t buffer = 0;
    const ColdWeights::Copies* copies = nullptr;
  };

  ObjectLoader loader_;
  RunContext context_;
  void* user_context_ = &context_;
  KernelArgv entry_ = nullptr;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  ColdWeights& cold_;
  std::vector<Weight> weights_;
  std::vector<std::vector<halide_dimension_t>> dims_;
  std::vector<halide_buffer_t> buffers_;
  std::vector<void*> arguments_;
  struct OnDevice;
  std::unique_ptr<OnDevice> device_;  ///< none: the kernel runs on the CPU
};

}  // namespace sylvite
