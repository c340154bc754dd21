#pragma once
// Values between launches by number, so that each may lie anywhere; and when a run needs each value, input and result.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "runtime/bindings.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/noted_launch.h"

namespace sylvite {

/// Memory that a run asks its caller for while its launches are queued. What it lets go may be taken by work that is queued
/// behind those that were, on the same stream.
struct RunMemory {
  cuda::DevicePointer work = 0;  ///< DeviceProgram::turn_bytes(), for the whole run
  std::function<cuda::DevicePointer(std::size_t output)> take_output;
  std::function<cuda::DevicePointer(std::size_t value, std::size_t bytes)> take_value;
  std::function<void(std::size_t value)> drop_value;
  std::function<void(std::size_t input)> drop_input;
};

/// What a run asks for ahead of a launch, and lets go behind it. Results that no launch writes are in none.
struct LaunchTurn {
  std::vector<std::size_t> outputs, values;
  std::vector<std::size_t> last_values, last_inputs;
};

/// Large values have memory of their own; small ones share a block.
class RunValues {
 public:
  /// `values` must live as long.
  explicit RunValues(const std::vector<ArenaValue>& values);
  /// Launches are named anew.
  void restart();

  /// Says addresses in the arena as ones in values. REQUIRES calls in the order of launches, for each once.
  void name(std::vector<cuda::NotedLaunch>& noted);
  /// The same of a place of a result, after all launches.
  [[nodiscard]] cuda::SymbolicAddress name(const Location& place) const;

  /// Where all lie in one arena.
  [[nodiscard]] std::vector<cuda::DevicePointer> in_arena(cuda::DevicePointer arena) const;
  /// Where the small ones lie; 0 for the others.
  [[nodiscard]] std::vector<cuda::DevicePointer> in_block(cuda::DevicePointer block) const;
  [[nodiscard]] std::size_t block_bytes() const { return static_cast<std::size_t>(block_.bytes); }
  [[nodiscard]] std::size_t bytes(std::size_t value) const {
    return static_cast<std::size_t>(values_[value].bytes);
  }

  /// Per launch.
  [[nodiscard]] std::vector<LaunchTurn> turns(const Bindings& bindings) const;

 private:
  [[nodiscard]] cuda::SymbolicAddress named(const cuda::SymbolicAddress& address) const;
  [[nodiscard]] bool is_large(std::size_t value) const { return values_[value].bytes >= least_large_; }

  const std::vector<ArenaValue>& values_;
  std::int64_t least_large_;
  BlockPlaces block_;  ///< of the small ones
  std::map<std::int32_t, std::vector<std::size_t>> first_,
      last_;                                   ///< values, by the launch that touches them first, and last
  std::int32_t next_ = 0;                      ///< launch
  std::map<std::int64_t, std::size_t> alive_;  ///< values at that launch, by where they begin
};

}  // namespace sylvite
