#pragma once
// Memory of a program: the arena for intermediate values, and blocks for results that return when nobody
// reads them.

#include <cstddef>
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

}  // namespace sylvite
