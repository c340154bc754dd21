#pragma once
// Where every argument of every launch lies: what Program binds to memory, and the exporter writes as tables.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "lowering/plan/memory_plan.h"
#include "lowering/plan/plan.h"
#include "runtime/cuda/noted_launch.h"
#include "runtime/packed_weights.h"
#include "schedules/candidate.h"

namespace sylvite {

/// Bytes somewhere. `number` is the plan's input or output, the slot in Bindings::weights, or the offset in the arena or
/// the states.
struct Location {
  BufferKind kind = BufferKind::arena;
  std::int64_t number = 0;
  bool operator==(const Location&) const = default;
};

/// The same for launches on a device. Throws UnsupportedError when it is too large for an address there.
[[nodiscard]] cuda::SymbolicAddress symbolic(const Location& place);

struct Argument {
  DType dtype = DType::f32;
  Dims stored;  ///< extents in memory, outermost first, without gaps: layout and packing included
  bool has_outer_blocks = false;  ///< see storage_order.h
  Location place;                 ///< at the first trip
  std::optional<Window> window;   ///< of an argument in the arena that moves with the trips of a loop
  /// How far it is from `place` at that trip, in bytes.
  [[nodiscard]] std::int64_t moved(std::int64_t trip) const {
    return window ? window->offset(trip) - window->offset(0) : 0;
  }
};

struct BoundLaunch {
  std::vector<Argument> arguments;  ///< inputs, then outputs
  std::size_t inputs = 0;           ///< how many of them
  Dims sizes;                       ///< arguments between inputs and outputs: Kernel::sizes
  bool is_empty = false;            ///< every output has no elements: nothing to do
};

/// What lies in the arena while the launches of its range run. Others may lie there at other times.
struct ArenaValue {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  LiveRange range;
};

struct Bindings {
  std::vector<BoundLaunch> launches;  ///< in plan order
  /// Per graph output. {output, its own number} where a launch writes it; anything else is copied from there
  /// after the launches. A weight is here the index into Plan::weights, dense.
  std::vector<Location> outputs;
  std::shared_ptr<PackedWeights>
      weights;  ///< requested, not yet packed; programs at several sizes may share them
  /// By slot: where these are not the first's whose weights they share, those of these sizes.
  std::map<PackedWeights::Slot, Tensor> own_weights = {};
  std::vector<TensorType> inputs;   ///< per input of the plan
  std::vector<TensorType> results;  ///< likewise, of outputs
  std::int64_t arena_bytes = 0;
  std::vector<ArenaValue> values = {};  ///< in the arena, each whole
};

/// A launch writes the result where it is wanted, so that nothing is copied.
[[nodiscard]] bool has_own_memory(const Bindings& bindings, std::size_t output);

/// Packed, and of these sizes.
[[nodiscard]] const Tensor& weight_of(const Bindings& bindings, PackedWeights::Slot slot);

/// `candidates[i]` is what plan.kernels[i] was compiled as. Throws InternalError for a plan that does not fit
/// them, UnsupportedError for a buffer with more than 2^31 elements.
[[nodiscard]] Bindings bind_plan(const Plan& plan, const std::vector<Candidate>& candidates);

}  // namespace sylvite
