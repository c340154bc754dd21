#pragma once
// Where each intermediate value lies: liveness over the launches, then best-fit offsets in one arena.

#include "lowering/plan/plan.h"

namespace sylvite {

constexpr std::int64_t arena_alignment = 64;  ///< bytes: offsets in arenas are multiples of it

/// The launches during which a root buffer's bytes matter, both ends included. Outputs live to the end. What a loop
/// has in common with launches outside of it matters in the whole loop.
struct LiveRange {
  std::int32_t first = 0;
  std::int32_t last = -1;  ///< less than `first` when nothing touches the buffer
  [[nodiscard]] bool overlaps(const LiveRange& other) const {
    return first <= other.last && other.first <= last;
  }
};
/// Places in one block of memory.
struct BlockPlaces {
  std::vector<std::int64_t> offsets;  ///< multiples of arena_alignment
  std::int64_t bytes = 0;             ///< the peak
};
/// Best-fit places for values of so many bytes, of which those that live at the same time never overlap; largest first, unless
/// `reuse` is false: then each has a place of its own.
[[nodiscard]] BlockPlaces place_values(const std::vector<LiveRange>& ranges,
                                       const std::vector<std::int64_t>& bytes, bool reuse);

/// Where the roots in the arena lie, as it follows from how many bytes each has: what launches say of them is looked at once.
class ArenaPlaces {
 public:
  /// As place_buffers. REQUIRES launches, outputs, and kinds and aliases of buffers final.
  ArenaPlaces(const Plan& plan, bool reuse);

  /// Buffers of the plan, in the order in which places are told.
  [[nodiscard]] const std::vector<BufferId>& roots() const { return roots_; }
  /// Per root.
  [[nodiscard]] const std::vector<LiveRange>& ranges() const { return ranges_; }
  /// `bytes`: per root.
  [[nodiscard]] BlockPlaces at(const std::vector<std::int64_t>& bytes) const {
    return place_values(ranges_, bytes, reuse_);
  }

 private:
  std::vector<BufferId> roots_;
  std::vector<LiveRange> ranges_;
  bool reuse_;
};

/// Sets the offset of every root in the arena and of every state, arena_bytes, state_bytes and sum_of_values_bytes. Values that live at the same
/// time never overlap; a launch's outputs never overlap its inputs, because schedules may recompute points.
/// REQUIRES launches, buffers and outputs final. With reuse == false every value has a place of its own.
void place_buffers(Plan& plan, bool reuse);

/// The buffer whose bytes these are: follows alias_of to its end.
[[nodiscard]] BufferId root_of(const Plan& plan, BufferId buffer);

/// Where the buffer begins within its root at that trip of the loop that uses it, in bytes.
[[nodiscard]] std::int64_t offset_in_root(const Plan& plan, BufferId buffer, std::int64_t trip = 0);
/// The window that it is, or is a part of; at most one is. nullptr: it does not move.
[[nodiscard]] const Window* window_of(const Plan& plan, BufferId buffer);

[[nodiscard]] std::vector<LiveRange> live_ranges(const Plan& plan);  ///< per buffer; filled in for roots

}  // namespace sylvite
