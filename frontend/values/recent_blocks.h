#pragma once
// Memory of tensors that came back last, for those that are made next.

#include <cstddef>
#include <memory>

namespace sylvite {

/// The largest block that is kept, and the most that all of them take.
inline constexpr std::size_t largest_recent_block = std::size_t{8} << 20;
inline constexpr std::size_t most_recent_bytes = std::size_t{32} << 20;

/// A block of zeros, 64-byte aligned; nothing when there is no memory. The system gives a large block page by page, when it is first
/// touched, which takes many times as long as to clear one that was used before; and evaluation makes a tensor for each operation,
/// of the same few sizes run after run. What comes back is kept, up to the limits above, the oldest given up first. Thread safe.
[[nodiscard]] std::shared_ptr<void> take_zeroed(std::size_t bytes);

/// Of the blocks that are kept now.
[[nodiscard]] std::size_t recent_bytes();

}  // namespace sylvite
