#include "runtime/host_room.h"

#include <mutex>

namespace sylvite {
namespace {

/// The heap of the process while there are rooms.
class ProcessHeap {
 public:
  std::shared_ptr<BlockHeap<Arena>> find() {
    const std::lock_guard lock(mutex_);
    return shared_.lock();
  }
  std::shared_ptr<BlockHeap<Arena>> find_or_make() {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<BlockHeap<Arena>> heap = shared_.lock();
    if (heap == nullptr) shared_ = heap = std::make_shared<BlockHeap<Arena>>();
    return heap;
  }

 private:
  std::mutex mutex_;
  std::weak_ptr<BlockHeap<Arena>> shared_;
};

/// Made by the first room, so that it outlives models that are static.
ProcessHeap& process_heap() {
  static ProcessHeap heap;
  return heap;
}

}  // namespace

HostRoom::HostRoom(std::size_t arena_bytes)
    : shared_(process_heap().find_or_make()), arena_bytes_(arena_bytes) {}

void HostRoom::begin_anew(std::size_t arena_bytes) {
  arena_bytes_ = arena_bytes;
  arena_.reset();
  placed_at_ = nullptr;
  uses_.clear();
}

void HostRoom::begin() {
  if (arena_bytes_ == 0) return;
  if (arena_ == nullptr) arena_ = heap_of(arena_bytes_).take(arena_bytes_);
  if (arena_.get() == placed_at_) return;
  placed_at_ = arena_.get();
  auto* const start = static_cast<std::uint8_t*>(arena_.get());
  for (const auto& [pointer, offset] : uses_) *pointer = start + offset;
}

void HostRoom::end() {
  if (arena_bytes_ > most_own_bytes) arena_.reset();
}

void HostRoom::trim() {
  if (const std::shared_ptr<BlockHeap<Arena>> heap = process_heap().find()) heap->trim();
}

}  // namespace sylvite
