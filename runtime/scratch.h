#pragma once
// Memory that kernels take while they run: Halide's malloc and free for kernels in this process.

#include <cstddef>

namespace sylvite {

/// 128-byte aligned, contents unspecified; nullptr when there is none. Large blocks are kept when they are given back:
/// the system would clear every page of them again at the next run, which can take as long as the kernel. So much is
/// kept as was in use at one time, in blocks of the largest size. Thread safe.
void* take_scratch(void* user_context, std::size_t bytes);
/// REQUIRES what take_scratch returned, once; nullptr is ignored. Thread safe.
void give_scratch(void* user_context, void* memory);

/// Bytes that are kept and not in use.
[[nodiscard]] std::size_t kept_scratch_bytes();

}  // namespace sylvite
