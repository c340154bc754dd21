#include "runtime/host_room.h"

#include <mutex>

namespace sylvite {
namespace {

std::shared_ptr<BlockHeap<Arena>> process_heap() {
  static std::mutex mutex;
  static std::weak_ptr<BlockHeap<Arena>> shared;
  const std::lock_guard lock(mutex);
  std::shared_ptr<BlockHeap<Arena>> heap = shared.lock();
  if (heap == nullptr) shared = heap = std::make_shared<BlockHeap<Arena>>();
  return heap;
}

}  // namespace

HostRoom::HostRoom(std::size_t arena_bytes) : shared_(process_heap()), arena_bytes_(arena_bytes) {}

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

}  // namespace sylvite
