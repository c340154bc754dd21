#pragma once
// The device's side of a Program: memory for everything that launches name, and the launches, made of notes
// once and replayed.

#include <map>
#include <memory>
#include <vector>

#include "lowering/plan/plan.h"
#include "runtime/bindings.h"
#include "runtime/cuda/launch_maker.h"
#include "runtime/cuda/launch_streams.h"
#include "runtime/memory.h"
#include "runtime/profile.h"

namespace sylvite {

/// What one launch of a plan does on the device, in order.
using NotedLaunches = std::vector<cuda::NotedLaunch>;

/// Device memory of a caller: dense row-major tensors in graph order, each at a multiple of 16 bytes.
struct DeviceArguments {
  std::vector<cuda::DevicePointer> inputs;
  std::vector<cuda::DevicePointer> outputs;
  bool operator==(const DeviceArguments&) const = default;
};

/// Thread safety: one thread at a time. `plan` and `bindings` must live as long.
class DeviceProgram {
 public:
  /// Allocates memory and uploads the weights, which are packed. `use_graph`: runs are replayed as one CUDA
  /// graph, in which launches that do not depend on each other lie on up to `streams` branches. Throws
  /// CudaError when memory runs out.
  DeviceProgram(const Plan& plan, const Bindings& bindings, bool use_graph, std::size_t streams = 1);

  /// Before the launches are added, or added anew.
  void begin_launches(std::size_t scratch_bytes);
  /// What the next launch of the plan does. Throws CompileError when the driver refuses an image.
  void add_launches(const NotedLaunches& noted);
  [[nodiscard]] bool is_complete() const { return launches_.size() == plan_.launches.size(); }

  /// Inputs and results as Program::run has them; the inputs' types are checked already. Results are in
  /// page-locked memory.
  [[nodiscard]] std::vector<Tensor> run(const std::vector<Tensor>& inputs, std::vector<LaunchTime>* profile);
  /// The same on a caller's memory and stream, without a copy and without waiting: the run is queued, and the
  /// memory must stay until it has ended. Runs of one program must be ordered among themselves: on one
  /// stream, or by events. Addresses that differ from the last run's cost some microseconds of the host, or
  /// with `use_graph` a new recording. Throws InputError for an address that is null or not aligned.
  void run_on(cuda::StreamHandle stream, const DeviceArguments& arguments);
  /// Microseconds on the device for one run without copies, the mean of `times` runs in a row on the inputs
  /// of the last run.
  [[nodiscard]] double time_replays(int times);
  [[nodiscard]] std::int64_t bytes() const;  ///< on the device

 private:
  void upload_weights();
  void upload(const std::vector<Tensor>& inputs);
  void bind(const DeviceArguments& arguments);
  void issue(cuda::StreamHandle stream);
  void issue_in_order(cuda::StreamHandle stream) const;
  void record_branches();
  void issue_profiled(std::vector<LaunchTime>& profile);
  [[nodiscard]] std::vector<cuda::Launch> make(const NotedLaunches& noted);
  void copy_outputs(cuda::StreamHandle stream);
  [[nodiscard]] std::vector<Tensor> download(const std::vector<Tensor>& inputs);

  const Plan& plan_;
  const Bindings& bindings_;
  bool use_graph_;
  std::size_t streams_;
  cuda::DeviceMemory arena_;
  cuda::DeviceMemory scratch_;
  cuda::DeviceMemory weights_;
  std::vector<cuda::DeviceMemory> inputs_;
  std::vector<cuda::DeviceMemory> outputs_;
  std::vector<cuda::PinnedMemory> staging_;             ///< per input
  std::vector<BlockPool<cuda::PinnedMemory>> results_;  ///< per output
  DeviceArguments own_;                                 ///< inputs_ and outputs_
  cuda::Regions regions_;                               ///< what the launches are bound to
  cuda::Stream stream_;
  cuda::LaunchMaker maker_;
  std::vector<std::vector<cuda::Launch>> launches_;  ///< per launch of the plan
  std::map<std::size_t, NotedLaunches> outward_;     ///< those that read inputs or write outputs
  std::vector<Touches> own_touches_;                 ///< per launch: memory that no argument names
  cuda::Graph graph_;
};

}  // namespace sylvite
