#pragma once
// The device's side of a Program: memory for everything that launches name, and the launches, noted once and
// replayed.

#include <functional>
#include <memory>
#include <vector>

#include "lowering/plan.h"
#include "runtime/bindings.h"
#include "runtime/cuda_recorder.h"
#include "runtime/memory.h"
#include "runtime/profile.h"

namespace sylvite {

/// Work for a stream: a launch, or a call of a library.
using DeviceStep = std::function<void(cuda::StreamHandle)>;

/// Thread safety: one thread at a time. `plan` and `bindings` must live as long.
class DeviceProgram {
 public:
  /// Allocates memory and uploads the weights, which are packed. `use_graph`: runs are replayed as one CUDA
  /// graph. Throws CudaError when memory runs out.
  DeviceProgram(const Plan& plan, const Bindings& bindings, bool use_graph);

  [[nodiscard]] cuda::DevicePointer address(const Place& place) const;
  [[nodiscard]] cuda::LaunchRecorder& recorder() { return recorder_; }

  /// The steps of all launches, in plan order; before the first run.
  void set_steps(std::vector<std::vector<DeviceStep>> steps) { steps_ = std::move(steps); }
  [[nodiscard]] bool has_steps() const { return !steps_.empty() || plan_.launches.empty(); }

  /// Inputs and results as Program::run has them; the inputs' types are checked already. Results are in
  /// page-locked memory.
  [[nodiscard]] std::vector<Tensor> run(const std::vector<Tensor>& inputs, std::vector<LaunchTime>* profile);
  /// Microseconds on the device for one run without copies, the mean of `times` runs in a row on the inputs
  /// of the last run.
  [[nodiscard]] double time_replays(int times);
  [[nodiscard]] std::int64_t bytes() const;  ///< on the device

 private:
  void upload_weights();
  void upload(const std::vector<Tensor>& inputs);
  void issue();
  void issue_profiled(std::vector<LaunchTime>& profile);
  [[nodiscard]] std::vector<Tensor> download(const std::vector<Tensor>& inputs);

  const Plan& plan_;
  const Bindings& bindings_;
  bool use_graph_;
  cuda::DeviceMemory arena_;
  cuda::DeviceMemory weights_;
  std::vector<std::size_t> weight_offsets_;  ///< per slot
  std::vector<cuda::DeviceMemory> inputs_;
  std::vector<cuda::DeviceMemory> outputs_;
  std::vector<cuda::PinnedMemory> staging_;             ///< per input
  std::vector<BlockPool<cuda::PinnedMemory>> results_;  ///< per output
  cuda::Stream stream_;
  cuda::LaunchRecorder recorder_;
  std::vector<std::vector<DeviceStep>> steps_;
  cuda::Graph graph_;
};

}  // namespace sylvite
