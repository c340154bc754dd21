#pragma once
// Memory of a program: the arena for intermediate values, and blocks for results that return when nobody
// reads them.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace sylvite {

/// Zeroed memory straight from the system, page aligned, in huge pages where the system has them. Pages cost
/// nothing until touched.
class Arena {
 public:
  explicit Arena(std::size_t bytes);  ///< throws std::bad_alloc
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Blocks of one size, reused. A block goes back to the pool when the last pointer to it is gone; the pool
/// may be destroyed before its blocks. Thread safe. `Memory` is Arena, or another owner made from a size.
template <typename Memory>
class BlockPool {
 public:
  explicit BlockPool(std::size_t block_bytes)
      : block_bytes_(block_bytes), state_(std::make_shared<State>()) {}

  /// 64-byte aligned, contents unspecified.
  [[nodiscard]] std::shared_ptr<void> take() {
    std::unique_ptr<Memory> block = state_->take();
    if (!block) block = std::make_unique<Memory>(block_bytes_);
    std::shared_ptr<Memory> taken(
        block.release(), [state = state_](Memory* memory) { state->give(std::unique_ptr<Memory>(memory)); });
    void* data = taken->data();
    return {std::move(taken), data};
  }

 private:
  struct State {
    std::mutex mutex;
    std::vector<std::unique_ptr<Memory>> free;

    std::unique_ptr<Memory> take() {
      const std::lock_guard lock(mutex);
      if (free.empty()) return nullptr;
      std::unique_ptr<Memory> block = std::move(free.back());
      free.pop_back();
      return block;
    }
    void give(std::unique_ptr<Memory> block) {
      const std::lock_guard lock(mutex);
      free.push_back(std::move(block));
    }
  };
  std::size_t block_bytes_;
  std::shared_ptr<State> state_;
};

/// Blocks of any size, from pools of sizes that are a quarter to an eighth of a power of two apart: blocks are at most a
/// quarter larger than wanted, and however many sizes there are, those that wait are a few times the largest. Thread safety: one
/// thread at a time; blocks go back from any.
template <typename Memory>
class BlockPools {
 public:
  /// As BlockPool::take, with this many bytes at least.
  [[nodiscard]] std::shared_ptr<void> take(std::size_t bytes) {
    const std::size_t step = std::max<std::size_t>(std::bit_floor(bytes) / 4, 64);
    const std::size_t size = std::max<std::size_t>((bytes + step - 1) / step * step, step);
    return pools_.try_emplace(size, size).first->second.take();
  }

 private:
  std::map<std::size_t, BlockPool<Memory>> pools_;  ///< by size
};

}  // namespace sylvite
