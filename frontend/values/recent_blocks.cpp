#include "frontend/values/recent_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/fork.h"
#include "base/sanitizer.h"

namespace sylvite {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t least_recent_block = std::size_t{64}
                                           << 10;  // smaller ones come from the heap as they are

/// The system gives a large block huge pages where it has them: it is asked for each page once, when it is first used.
void want_huge_pages(void* block, std::size_t bytes) {
  constexpr std::size_t large = std::size_t{4} << 20;
  constexpr std::size_t page = 4096;
  if (bytes < large) return;
  std::size_t space = bytes;
  if (std::align(page, large / 2, block, space) != nullptr)
    ::madvise(block, space / page * page, MADV_HUGEPAGE);  // a hint: failure is fine
}

struct Block {
  void* begin = nullptr;
  std::size_t bytes = 0;
};

class RecentBlocks {
 public:
  /// One of the very size, or without a beginning.
  Block take(std::size_t bytes) {
    const NoFork no_fork;
    const std::scoped_lock lock(mutex_);
    const auto end = blocks_.begin() + count_;
    const auto found = std::find_if(blocks_.begin(), end, [=](const Block& b) { return b.bytes == bytes; });
    if (found == end) return {};
    const Block block = *found;
    std::move(found + 1, end, found);
    --count_;
    held_ -= bytes;
    show_memory(block.begin, block.bytes);
    return block;
  }

  /// Allocates nothing, so that it never fails.
  void give(const Block& block) {
    std::array<Block, most_blocks> old;
    std::size_t given_up = 0;
    hide_memory(block.begin, block.bytes);
    {
      const NoFork no_fork;
      const std::scoped_lock lock(mutex_);
      while (count_ == most_blocks || (count_ > 0 && held_ + block.bytes > most_recent_bytes)) {
        held_ -= blocks_[--count_].bytes;
        old[given_up++] = blocks_[count_];
      }
      std::move_backward(blocks_.begin(), blocks_.begin() + count_, blocks_.begin() + count_ + 1);
      blocks_[0] = block;
      ++count_;
      held_ += block.bytes;
    }
    for (std::size_t i = 0; i < given_up; ++i) {
      show_memory(old[i].begin, old[i].bytes);
      std::free(old[i].begin);
    }
  }

  [[nodiscard]] std::size_t held() {
    const std::scoped_lock lock(mutex_);
    return held_;
  }

 private:
  static constexpr std::size_t most_blocks = 64;

  std::mutex mutex_;
  std::array<Block, most_blocks> blocks_;  ///< the last one first
  std::size_t count_ = 0;
  std::size_t held_ = 0;
};

/// Tensors may come back after all that is static is gone.
RecentBlocks& recent_blocks() {
  static auto* blocks = new RecentBlocks();
  return *blocks;
}

}  // namespace

/// calloc leaves large blocks untouched until they are used, so a tensor costs its pages once.
std::shared_ptr<void> take_zeroed(std::size_t bytes) {
  const std::size_t whole = bytes + alignment;
  const bool is_kept = bytes >= least_recent_block && bytes <= largest_recent_block;
  Block block = is_kept ? recent_blocks().take(whole) : Block();
  const bool is_used = block.begin != nullptr;
  if (!is_used) {
    block = {std::calloc(whole, 1), whole};
    if (block.begin == nullptr) return nullptr;
    want_huge_pages(block.begin, bytes);
  }
  std::shared_ptr<void> owner =
      is_kept ? std::shared_ptr<void>(block.begin, [block](void*) { recent_blocks().give(block); })
              : std::shared_ptr<void>(block.begin, std::free);
  std::size_t space = whole;
  void* begin = std::align(alignment, bytes, block.begin, space);
  if (is_used) std::memset(begin, 0, bytes);
  return {std::move(owner), begin};
}

std::size_t recent_bytes() {
  return recent_blocks().held();
}

}  // namespace sylvite
