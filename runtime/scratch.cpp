#include "runtime/scratch.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "base/rounding.h"
#include "runtime/memory.h"

namespace sylvite {
namespace {

constexpr std::size_t scratch_alignment = 128;
/// Smaller blocks the C library keeps by itself. Those above it gives back to the system once they lie free at the end of
/// its heap: a kernel with ten blocks of half a megabyte spent a third of its time on pages cleared anew.
constexpr std::size_t large = std::size_t{1} << 16;

/// In front of each block: whose it is, nullptr for the C library.
struct Header {
  Arena* arena = nullptr;
};
static_assert(sizeof(Header) <= scratch_alignment);

Header& header_before(void* memory) {
  return *reinterpret_cast<Header*>(static_cast<std::byte*>(memory) - scratch_alignment);
}

void* behind_header(void* block, Arena* arena) {
  auto* memory = static_cast<std::byte*>(block) + scratch_alignment;
  new (&header_before(memory)) Header{arena};
  return memory;
}

/// Large blocks that nobody uses.
class Kept {
 public:
  /// Never destroyed: kernels may run until the very end.
  static Kept& instance() {
    static auto* kept = new Kept();
    return *kept;
  }

  /// The smallest that is large enough. A new one where there is none; it serves whom smaller ones would, so those go.
  std::unique_ptr<Arena> take(std::size_t bytes) {
    std::vector<std::unique_ptr<Arena>> too_small;  // unmapped once others may go on
    {
      const std::lock_guard lock(mutex_);
      const auto fits = [&](const std::unique_ptr<Arena>& block) { return block->size() >= bytes; };
      const auto found = std::ranges::find_if(blocks_, fits);
      if (found != blocks_.end()) {
        std::unique_ptr<Arena> block = std::move(*found);
        blocks_.erase(found);
        return block;
      }
      too_small.swap(blocks_);
    }
    too_small.clear();
    return std::make_unique<Arena>(bytes);
  }

  void give(std::unique_ptr<Arena> block) {
    const std::lock_guard lock(mutex_);
    const auto after = std::ranges::upper_bound(
        blocks_, block->size(), {}, [](const std::unique_ptr<Arena>& each) { return each->size(); });
    blocks_.insert(after, std::move(block));
  }

  std::size_t bytes() {
    const std::lock_guard lock(mutex_);
    std::size_t sum = 0;
    for (const std::unique_ptr<Arena>& block : blocks_) sum += block->size();
    return sum;
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Arena>> blocks_;  ///< smallest first
};

}  // namespace

void* take_scratch(void* /*user_context*/, std::size_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) return nullptr;
  const std::size_t whole = round_up(bytes, scratch_alignment) + scratch_alignment;
  if (whole < large) {
    void* block = std::aligned_alloc(scratch_alignment, whole);
    return block == nullptr ? nullptr : behind_header(block, nullptr);
  }
  try {
    Arena* arena = Kept::instance().take(whole).release();
    return behind_header(arena->data(), arena);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void give_scratch(void* /*user_context*/, void* memory) {
  if (memory == nullptr) return;
  if (Arena* arena = header_before(memory).arena)
    Kept::instance().give(std::unique_ptr<Arena>(arena));
  else
    std::free(static_cast<std::byte*>(memory) - scratch_alignment);
}

std::size_t kept_scratch_bytes() {
  return Kept::instance().bytes();
}

}  // namespace sylvite
