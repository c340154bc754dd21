#pragma once
// Weights for measuring: packed, and in so many copies that each call finds its own in memory, not in a
// cache.

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "lowering/plan/packing.h"
#include "runtime/memory.h"
#include "sylvite/tensor.h"

namespace sylvite {

/// The weights of one kernel. A model's weights are seldom in a cache when their kernel runs, as the other
/// kernels ran since; a candidate that is timed with one copy of them looks faster than it will be.
/// Candidates of one race share the copies and the turn, so that none finds what another just read. Thread
/// safety: none.
class ColdWeights {
 public:
  /// About this many bytes pass by before a copy is used again.
  static constexpr std::int64_t default_cycle_bytes = std::int64_t{128} << 20;

  /// `inputs` as random_inputs makes them, kept by reference. `cycle_bytes` 0 makes one copy.
  explicit ColdWeights(const std::vector<Tensor>& inputs, std::int64_t cycle_bytes = default_cycle_bytes)
      : inputs_(inputs), cycle_bytes_(cycle_bytes) {}

  struct Copies {
    Dims dims;  ///< as packed
    DType dtype = DType::f32;
    std::size_t count = 0;
    std::size_t stride = 0;  ///< bytes from one to the next, a multiple of 64
    std::unique_ptr<Arena> bytes;

    /// Downwards in memory, so that nothing prefetched past the end of one copy helps the next call.
    [[nodiscard]] std::byte* at(std::size_t turn) const {
      return bytes->data() + (count - 1 - turn % count) * stride;
    }
  };
  /// Input `number` in this packing; made once. The reference holds for the life of this object.
  [[nodiscard]] const Copies& packed(std::size_t number, const Packing& packing);
  /// Which copies the next call reads.
  [[nodiscard]] std::size_t next_turn() { return turn_++; }

 private:
  const std::vector<Tensor>& inputs_;
  std::int64_t cycle_bytes_;
  std::size_t turn_ = 0;
  std::map<std::pair<std::size_t, Packing>, Copies> copies_;
};

}  // namespace sylvite
