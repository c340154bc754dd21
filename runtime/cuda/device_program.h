#pragma once
// The device's side of a Program: the launches, made of notes once and moved to where a run's memory lies.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "lowering/plan/plan.h"
#include "runtime/bindings.h"
#include "runtime/cuda/device_room.h"
#include "runtime/cuda/device_weights.h"
#include "runtime/cuda/launch_maker.h"
#include "runtime/cuda/launch_streams.h"
#include "runtime/cuda/modules.h"
#include "runtime/cuda/recorded_graphs.h"
#include "runtime/cuda/run_values.h"
#include "runtime/profile.h"
#include "runtime/state_memory.h"

namespace sylvite {

/// What one launch of a plan does on the device, in order.
using NotedLaunches = std::vector<cuda::NotedLaunch>;

/// What programs that take turns share on the device.
struct DeviceShare {
  std::shared_ptr<StateMemory> states;
  std::shared_ptr<cuda::Modules> modules;
  std::shared_ptr<DeviceRoom> room;
};

/// Thread safety: one thread at a time. `plan` and `bindings` must live as long.
class DeviceProgram {
 public:
  /// Numbers that depend on sizes are those of `bindings`. Uploads the weights, which are packed, but for those that `relatives`
  /// have. `use_graph`: runs are replayed as CUDA
  /// graphs, in which launches that do not depend on each other lie on up to `streams` branches. Throws
  /// CudaError when memory runs out.
  DeviceProgram(const Plan& plan, const Bindings& bindings, DeviceShare shared, bool use_graph,
                std::size_t streams = 1, const DeviceWeights::Relatives& relatives = {});
  ~DeviceProgram();

  /// Before the launches are added, or added anew.
  void begin_launches(std::size_t scratch_bytes);
  /// What the next launch of the plan does. Throws CompileError when the driver refuses an image.
  void add_launches(const NotedLaunches& noted);
  [[nodiscard]] bool is_complete() const { return noted_.size() == plan_.launches.size(); }

  /// Inputs and results as Program::run has them; the inputs' types are checked already. Results are in
  /// page-locked memory. The first run takes memory for inputs, results and values between. To the profile it adds a time per
  /// launch, without what the launch is.
  [[nodiscard]] std::vector<Tensor> run(const std::vector<Tensor>& inputs, std::vector<LaunchTime>* profile);
  /// The same on a caller's memory and stream, without a copy and without waiting: the run is queued, and the
  /// memory must stay until it has ended. Runs of one program with the same work memory must be ordered among
  /// themselves: on one stream, or by events. Addresses that differ from the last run's cost some microseconds of the
  /// host; with `use_graph` runs at addresses that come again are recorded, a bounded number of times. Where the stream
  /// is captured, the launches become part of that. Throws InputError for an address that is null or not aligned.
  void run_on(cuda::StreamHandle stream, const DeviceArguments& arguments);
  /// The same, queued launch by launch: what only some of them need is taken ahead of the first and let go behind the last.
  void run_in_turns(cuda::StreamHandle stream, const std::vector<cuda::DevicePointer>& inputs,
                    const RunMemory& memory);
  [[nodiscard]] std::size_t work_bytes() const;  ///< for DeviceArguments::work; REQUIRES is_complete()
  [[nodiscard]] std::size_t turn_bytes() const;  ///< for RunMemory::work; REQUIRES is_complete()
  /// Microseconds on the device for one run without copies, the mean of `times` runs in a row on the inputs
  /// of the last run.
  [[nodiscard]] double time_replays(int times);
  /// On the device, for one run: weights, and memory for inputs, results and values between, without what is in `counted`,
  /// where the rest is added.
  [[nodiscard]] std::int64_t bytes(std::set<const void*>& counted) const;
  [[nodiscard]] const std::shared_ptr<const DeviceWeights>& weights() const { return weights_; }

 private:
  void upload_constant_results();
  [[nodiscard]] DeviceArguments own_arguments();
  void upload(const std::vector<Tensor>& inputs, const DeviceArguments& arguments);
  void bind(const DeviceArguments& arguments);
  void bind_launch(std::size_t number);
  void issue(cuda::StreamHandle stream, const DeviceArguments& arguments, bool comes_again);
  void issue_in_order(cuda::StreamHandle stream) const;
  void wait_for_workspaces(cuda::StreamHandle stream);
  void note_workspaces(cuda::StreamHandle stream);
  void record_branches();
  void issue_profiled(std::vector<LaunchTime>& profile);
  [[nodiscard]] std::vector<cuda::Launch> make(const NotedLaunches& noted);
  [[nodiscard]] cuda::DevicePointer address_of(const Location& place, const DeviceArguments& arguments) const;
  /// `from`: where the results lie that launches write elsewhere.
  void copy_outputs(cuda::StreamHandle stream, const std::vector<cuda::DevicePointer>& outputs,
                    const std::function<cuda::DevicePointer(const Location&)>& from);
  [[nodiscard]] std::vector<Tensor> download(const std::vector<Tensor>& inputs,
                                             const DeviceArguments& arguments);

  const Plan& plan_;
  const Bindings& bindings_;
  DeviceShare shared_;
  bool use_graph_;
  std::size_t streams_;
  std::shared_ptr<const DeviceWeights> weights_;
  std::map<std::size_t, cuda::DeviceMemory> constant_results_;  ///< by output: results that are weights
  cuda::DeviceMemory own_work_;  ///< none before the first run on a caller's memory without work
  std::size_t scratch_bytes_ = 0;
  cuda::Regions regions_;  ///< what the launches are bound to
  cuda::Stream stream_;
  cuda::LaunchMaker maker_;
  std::vector<NotedLaunches> noted_;                       ///< per launch of the plan
  std::vector<std::vector<cuda::SymbolicAddress>> names_;  ///< likewise: what depends on the memory of a run
  std::vector<std::vector<cuda::Launch>> launches_;        ///< likewise; none before the first run
  std::vector<std::optional<std::vector<cuda::DevicePointer>>> bound_;  ///< likewise: where `names_` lay then
  RunValues values_;
  std::vector<LaunchTurn> turns_;     ///< likewise, once they were asked for
  std::vector<Touches> own_touches_;  ///< likewise: memory that no argument names
  bool has_library_ = false;          ///< then runs share workspaces
  cuda::Event library_done_{false};   ///< the last such run has ended
  cuda::StreamHandle library_stream_ = nullptr;
  bool library_ran_ = false;
  RecordedGraphs graphs_;
};

}  // namespace sylvite
