#pragma once
// How to launch a kernel on the GPU, as data. Arguments are numbered as a kernel's: inputs of the body, then
// its output; -1 is none.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/cuda/block_count.h"
#include "schedules/cuda/library_call.h"
#include "sylvite/types.h"

namespace sylvite {

/// How windows of a convolution walk over a tensor whose dims are channels, columns, lines, images. Per
/// column and line: `first` and `last` are the corners of the first and the last window, seen from the first
/// and the last element of the dim, at most 128 away; `step` is from window to window.
struct CudaWindows {
  int first[2] = {0, 0};
  int last[2] = {0, 0};
  int step[2] = {1, 1};
  bool operator==(const CudaWindows&) const = default;
};

/// A tensor that a kernel reads or writes in boxes (CUtensorMap), innermost dim first, always of rank 4.
struct CudaTensorMap {
  int argument = -1;        ///< whose address; -1: a map that nothing uses
  std::int64_t offset = 0;  ///< bytes from there to the first element, a multiple of 16
  DType dtype = DType::bf16;
  bool rounds_to_tf32 = false;  ///< f32: reading makes it the nearest number of 10 bits after the point
  std::int64_t dims[4] = {1, 1, 1, 1};
  std::int64_t pitches[3] = {16, 16, 16};  ///< bytes between neighbours along dims 1 to 3, multiples of 16
  int box[4] = {1, 1, 1, 1};               ///< of windows: channels, then how many windows
  int swizzle = 128;                       ///< bytes: 128, 64, 32 or 0
  std::optional<CudaWindows> windows;
  bool operator==(const CudaTensorMap&) const = default;
};

/// How many blocks of how many threads, and what they share.
struct LaunchShape {
  unsigned grid[3] = {1, 1, 1};   ///< blocks
  unsigned block[3] = {1, 1, 1};  ///< threads
  unsigned cluster = 1;           ///< consecutive blocks that share their memories
  unsigned shared_bytes = 0;      ///< of a block, beside those that the machine code declares
  bool programmatic = false;      ///< waits itself for the kernels before it, so it may be launched early
  unsigned most = 0;  ///< of grid[0] no more are launched, which take several parts in turn; 0: all are
  std::vector<BlockStep> steps;  ///< how grid[0] follows from extents; none: that is not known
  bool operator==(const LaunchShape&) const = default;

  void set_blocks(const BlockCount& blocks) {
    grid[0] = static_cast<unsigned>(blocks.value());
    steps = blocks.steps();
  }
};

/// A launch before its arguments are known. The kernel's parameters are the maps, then one struct of the
/// pointers and numbers.
struct LaunchSpec {
  std::string entry;  ///< name of the kernel in its machine code
  LaunchShape shape;
  std::vector<CudaTensorMap> maps;
  std::vector<int> pointers;          ///< arguments; -1: a pointer that nothing uses
  std::vector<std::int64_t> numbers;  ///< of an open kernel: extents of the run, below 2^31
  /// What a vendor's library launches instead: nothing above is used then.
  std::optional<LibraryCall> library;
  bool operator==(const LaunchSpec&) const = default;
};

}  // namespace sylvite
