#pragma once
// Memory of a program: the arena for intermediate values, and blocks for results that return when nobody
// reads them.

#include <cstddef>
#include <memory>

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
/// may be destroyed before its blocks. Thread safe.
class BlockPool {
 public:
  explicit BlockPool(std::size_t block_bytes);
  [[nodiscard]] std::shared_ptr<void> take();  ///< 64-byte aligned, contents unspecified

 private:
  struct State;
  std::size_t block_bytes_;
  std::shared_ptr<State> state_;
};

}  // namespace sylvite
