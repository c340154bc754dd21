#pragma once
// Memory of the host for runs of a program: intermediate values and results.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/block_heap.h"
#include "runtime/memory.h"

namespace sylvite {

/// All programs of the process take what their runs need from one heap, so that programs that take turns, at other sizes or of
/// other models, use the same memory. It goes when the last room does. Small blocks are the room's own, so that short runs do not
/// wait for other threads. Thread safety: one thread at a time; rooms are independent of each other, and results go back from any
/// thread.
class HostRoom {
 public:
  explicit HostRoom(std::size_t arena_bytes);

  /// For each run `pointer` is set to where this many bytes into the intermediate values are. It must outlive the room.
  void add_use(std::uint8_t** pointer, std::ptrdiff_t offset) { uses_.emplace_back(pointer, offset); }

  /// For so many bytes, and without uses. REQUIRES no Run.
  void begin_anew(std::size_t arena_bytes);

  /// As long as one lives the room has memory for intermediate values, contents unspecified, and pointers are set.
  class Run {
   public:
    explicit Run(HostRoom& room) : room_(room) { room_.begin(); }
    ~Run() { room_.end(); }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

   private:
    HostRoom& room_;
  };
  /// Of the intermediate values. REQUIRES a Run.
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(arena_.get()); }
  [[nodiscard]] std::size_t arena_bytes() const { return arena_bytes_; }

  /// Memory for a result: 64-byte aligned, contents unspecified.
  [[nodiscard]] std::shared_ptr<void> take_result(std::size_t bytes) { return heap_of(bytes).take(bytes); }

  /// Gives memory back to the system that no run and no result uses: for when a model goes and others stay. Thread safe.
  static void trim();

 private:
  /// Larger blocks are the process's.
  static constexpr std::size_t most_own_bytes = std::size_t{64} << 10;
  /// Results of one run come back one by one, as many as the program has.
  static constexpr std::size_t most_own_recent = 64;
  [[nodiscard]] BlockHeap<Arena>& heap_of(std::size_t bytes) {
    return bytes > most_own_bytes ? *shared_ : own_;
  }
  void begin();
  void end();

  BlockHeap<Arena> own_{most_own_recent};
  std::shared_ptr<BlockHeap<Arena>> shared_;
  std::size_t arena_bytes_;
  std::shared_ptr<void> arena_;
  const void* placed_at_ = nullptr;  ///< pointers are set for an arena there
  std::vector<std::pair<std::uint8_t**, std::ptrdiff_t>> uses_;
};

}  // namespace sylvite
