#pragma once
// Blocks of memory for results, which return when nobody reads them.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "base/rounding.h"
#include "base/sanitizer.h"

namespace sylvite {

/// Blocks of any size, cut from a few large pieces of memory. A block goes back when the last pointer to it is gone, and joins
/// what is free beside it, so that runs at other sizes use the memory that earlier ones have touched: what is held is about the
/// most that was in use at once, however many sizes there are. A block is one of the last that came back, where one has the very
/// size, else the begin of the smallest free range that is large enough (best fit, as in D. E. Knuth, The Art of Computer
/// Programming, volume 1, section 2.5). The heap may be destroyed before its blocks. Thread safe. `Memory` is Arena, or another
/// owner made from a size.
template <typename Memory>
class BlockHeap {
 public:
  /// So many blocks that came back last keep their sizes, for runs that want these again.
  static constexpr std::size_t few_recent = 8;
  explicit BlockHeap(std::size_t most_recent = few_recent) : state_(std::make_shared<State>(most_recent)) {}

  /// 64-byte aligned, contents unspecified. What Memory throws when there is none.
  [[nodiscard]] std::shared_ptr<void> take(std::size_t bytes) {
    const Range block = state_->take(round_up(std::max<std::size_t>(bytes, 1), alignment));
    show_memory(block.begin, block.size);
    return {block.begin, [state = state_, block](void*) { state->give(block); }};
  }

  /// Gives pieces back of which nothing is in use.
  void trim() {
    const NoFork no_fork;
    const std::lock_guard lock(state_->mutex);
    state_->release();
  }

  /// Of all pieces of memory, in use or not.
  [[nodiscard]] std::size_t held_bytes() const {
    const std::lock_guard lock(state_->mutex);
    return state_->held;
  }

 private:
  static constexpr std::size_t alignment = 64;
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t most_growth = std::size_t{1} << 30;

  struct Piece;
  struct Range {
    std::byte* begin;
    std::size_t size;
    Piece* piece;
  };
  struct Piece {
    explicit Piece(std::size_t bytes) : memory(bytes), range{memory.data(), bytes, this} {
      hide_memory(range.begin, range.size);
    }
    ~Piece() { show_memory(range.begin, range.size); }
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;
    Memory memory;
    Range range;
  };
  struct Smaller {
    bool operator()(const Range& a, const Range& b) const {
      return std::pair(a.size, a.begin) < std::pair(b.size, b.begin);
    }
  };

  struct State {
    explicit State(std::size_t count) : most_recent(count) { recent.reserve(most_recent); }
    const std::size_t most_recent;
    mutable std::mutex mutex;
    std::vector<std::unique_ptr<Piece>> pieces;
    std::vector<Range> recent;              ///< free, not yet joined: the next run often wants the same sizes
    std::map<std::byte*, Range> free;       ///< by where they begin
    std::set<Range, Smaller> free_by_size;  ///< the same
    std::size_t held = 0;

    Range take(std::size_t size) {
      const NoFork no_fork;
      const std::lock_guard lock(mutex);
      const auto same = std::find_if(recent.rbegin(), recent.rend(),
                                     [size](const Range& range) { return range.size == size; });
      if (same != recent.rend()) {
        const Range range = *same;
        *same = recent.back();
        recent.pop_back();
        return range;
      }
      join_recent();
      auto found = free_by_size.lower_bound(Range{nullptr, size, nullptr});
      if (found == free_by_size.end()) {
        add_piece(size);
        found = free_by_size.lower_bound(Range{nullptr, size, nullptr});
      }
      const Range range = *found;
      remove(range);
      if (range.size > size) add({range.begin + size, range.size - size, range.piece});
      return {range.begin, size, range.piece};
    }

    void give(const Range& range) {
      hide_memory(range.begin, range.size);
      const NoFork no_fork;
      const std::lock_guard lock(mutex);
      if (recent.size() == most_recent) join_recent();
      recent.push_back(range);
    }

    void join_recent() {
      for (const Range& range : recent) join(range);
      recent.clear();
    }

    void join(Range range) {
      const auto after = free.lower_bound(range.begin);
      const std::byte* end = range.begin + range.size;
      const bool joins_after =
          after != free.end() && after->first == end && after->second.piece == range.piece;
      const Range behind = joins_after ? after->second : Range{};
      if (after != free.begin()) {
        const Range before = std::prev(after)->second;
        if (before.piece == range.piece && before.begin + before.size == range.begin) {
          remove(before);
          range = {before.begin, before.size + range.size, range.piece};
        }
      }
      if (joins_after) {
        remove(behind);
        range.size += behind.size;
      }
      add(range);
    }

    /// Pieces of which nothing is in use are smaller than what is wanted now: they make room. Each is half of what is held at
    /// least, so that few are made.
    void add_piece(std::size_t size) {
      release();
      const std::size_t bytes = std::max(size, std::min(held / 2, most_growth));
      pieces.push_back(std::make_unique<Piece>(round_up(bytes, page)));
      held += pieces.back()->range.size;
      add(pieces.back()->range);
    }
    void release() {
      join_recent();
      std::erase_if(pieces, [this](const std::unique_ptr<Piece>& piece) {
        const auto found = free.find(piece->range.begin);
        if (found == free.end() || found->second.size != piece->range.size) return false;
        remove(piece->range);
        held -= piece->range.size;
        return true;
      });
    }
    void add(const Range& range) {
      free.emplace(range.begin, range);
      free_by_size.insert(range);
    }
    void remove(const Range& range) {
      free.erase(range.begin);
      free_by_size.erase(range);
    }
  };
  std::shared_ptr<State> state_;
};

}  // namespace sylvite
