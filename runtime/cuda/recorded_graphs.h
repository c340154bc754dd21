#pragma once
// Runs of one program as CUDA graphs: a graph holds the addresses that it was recorded with.

#include <cstdint>
#include <functional>
#include <list>
#include <vector>

#include "runtime/cuda/device.h"

namespace sylvite {

/// Device memory of one run: dense row-major tensors in graph order, each at a multiple of 16 bytes.
struct DeviceArguments {
  std::vector<cuda::DevicePointer> inputs;
  std::vector<cuda::DevicePointer> outputs;
  /// For values between, DeviceProgram::work_bytes() at a multiple of 256 bytes; 0: memory of the program.
  cuda::DevicePointer work = 0;
  bool operator==(const DeviceArguments&) const = default;
};

/// A run is worth recording when its addresses come again. Thread safety: one thread at a time.
class RecordedGraphs {
 public:
  static constexpr std::size_t most_kept = 8;
  static constexpr int most_recordings = 64;  ///< of runs that nobody said would come again

  /// The graph for these addresses; nullptr when there is none.
  [[nodiscard]] const cuda::Graph* find(const DeviceArguments& arguments);
  /// Whether a run at these addresses, for which there is no graph, should be recorded: it was asked before.
  [[nodiscard]] bool is_wanted(const DeviceArguments& arguments);
  /// The least recently used one goes when there are too many. The result is valid until the next call.
  const cuda::Graph& add(const DeviceArguments& arguments, cuda::Graph graph);
  void clear();

 private:
  struct Recorded {
    DeviceArguments arguments;
    cuda::Graph graph;
  };
  std::list<Recorded> graphs_;      ///< the latest first
  std::list<DeviceArguments> met_;  ///< of runs without a graph, the latest first
  int recordings_ = 0;
};

}  // namespace sylvite
