#pragma once
// A kernel of CUDA C++ text: what to compile, and how to launch what comes out.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/values/types.h"

namespace sylvite {

/// How windows of a convolution walk over a tensor whose dims are channels, columns, lines, images. Per
/// column and line: `first` and `last` are the corners of the first and the last window, seen from the first
/// and the last element of the dim, at most 128 away; `step` is from window to window.
struct CudaWindows {
  int first[2] = {0, 0};
  int last[2] = {0, 0};
  int step[2] = {1, 1};
};

/// A tensor that a kernel reads or writes in boxes (CUtensorMap), innermost dim first, always of rank 4.
struct CudaTensorMap {
  int argument = -1;        ///< whose address: see CudaTemplate; -1: a map that nothing uses
  std::int64_t offset = 0;  ///< bytes from there to the first element, a multiple of 16
  DType dtype = DType::bf16;
  /// f32: reading rounds to the nearest TF32. Tensor cores cut instead, which would make every result of a
  /// convolution smaller by 3.5e-4.
  bool rounds_to_tf32 = false;
  std::int64_t dims[4] = {1, 1, 1, 1};
  std::int64_t pitches[3] = {16, 16, 16};  ///< bytes between neighbours along dims 1 to 3, multiples of 16
  int box[4] = {1, 1, 1, 1};               ///< of windows: channels, then how many windows
  int swizzle = 128;                       ///< bytes: 128, 64, 32 or 0
  std::optional<CudaWindows> windows;
};

struct LibraryKernel;

/// The kernel's parameters are the maps, then one struct of the pointers. Arguments are numbered as a
/// kernel's: inputs of the body, then its output.
struct CudaTemplate {
  std::string name;
  std::string source;  ///< needs no header
  std::string architecture = "sm_90a";
  unsigned blocks = 1;
  unsigned threads = 384;
  unsigned cluster = 1;  ///< consecutive blocks that share their memories
  unsigned shared_bytes = 0;
  bool programmatic = false;  ///< waits itself for the kernels before it, so it may be launched early
  std::vector<CudaTensorMap> maps;
  std::vector<int> pointers;  ///< arguments; -1: a pointer that nothing uses
  /// What a vendor's library launches instead; there is no text then. See library_kernel.h.
  std::shared_ptr<const LibraryKernel> library;
};

/// The card as a template wants to know it.
struct CudaCard {
  int multiprocessors = 132;
  std::int64_t shared_bytes = 232448;  ///< of one block
};

}  // namespace sylvite
