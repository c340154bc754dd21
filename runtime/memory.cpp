#include "runtime/memory.h"

#include <sys/mman.h>

#include <mutex>
#include <new>
#include <vector>

namespace sylvite {

Arena::Arena(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ::madvise(memory, bytes, MADV_HUGEPAGE);  // a hint: failure is fine
  data_ = static_cast<std::byte*>(memory);
}

Arena::~Arena() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

struct BlockPool::State {
  std::mutex mutex;
  std::vector<std::unique_ptr<Arena>> free;
};

BlockPool::BlockPool(std::size_t block_bytes)
    : block_bytes_(block_bytes), state_(std::make_shared<State>()) {}

std::shared_ptr<void> BlockPool::take() {
  std::unique_ptr<Arena> block;
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->free.empty()) {
      block = std::move(state_->free.back());
      state_->free.pop_back();
    }
  }
  if (!block) block = std::make_unique<Arena>(block_bytes_);
  void* data = block->data();
  auto give_back = [state = state_, owner = block.release()](void*) {
    const std::lock_guard lock(state->mutex);
    state->free.emplace_back(owner);
  };
  return {data, std::move(give_back)};
}

}  // namespace sylvite
