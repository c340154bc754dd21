#pragma once
// Memory of a program.

#include <cstddef>

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

}  // namespace sylvite
