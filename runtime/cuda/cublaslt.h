#pragma once
// cuBLASLt's matrix products, the vendor's candidates for a matmul. The library is found when it is first
// called; nothing links to it and no CUDA header is needed.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/cuda/driver.h"
#include "schedules/cuda/library_call.h"

namespace sylvite::cuda {

/// E.g. 130100. Throws UnsupportedError when the library is not installed.
[[nodiscard]] std::int64_t cublaslt_version();

/// Every algorithm that cuBLASLt's heuristics propose for one problem. Thread safety: one thread at a time.
class CublasLtMatmul {
 public:
  struct Arguments {
    DevicePointer a = 0, b = 0, bias = 0, out = 0;
    DevicePointer workspace = 0;  ///< of workspace_bytes
  };

  /// REQUIRES a current context. Throws UnsupportedError when the library is not installed or has nothing for
  /// the problem.
  explicit CublasLtMatmul(const LibraryMatmulProblem& problem, std::size_t workspace_limit = 64 << 20);
  ~CublasLtMatmul();
  CublasLtMatmul(const CublasLtMatmul&) = delete;
  CublasLtMatmul& operator=(const CublasLtMatmul&) = delete;

  [[nodiscard]] std::size_t algorithm_count() const { return algorithms_.size(); }
  /// Throws UnsupportedError when there is no such algorithm.
  [[nodiscard]] std::size_t workspace_bytes(std::size_t algorithm) const;
  /// Enqueues the product; may be captured.
  void run(std::size_t algorithm, const Arguments& arguments, StreamHandle stream) const;

 private:
  /// cublasLtMatmulHeuristicResult_t.
  struct Algorithm {
    std::array<std::uint64_t, 8> opaque;
    std::size_t workspace_bytes;
    int state;
    float waves;
    std::array<int, 4> reserved;
  };
  using Descriptor = struct DescriptorTag*;
  using MatrixLayout = struct MatrixLayoutTag*;

  void describe(const LibraryMatmulProblem& problem);
  void find_algorithms(std::size_t workspace_limit);
  void release() noexcept;

  Descriptor operation_ = nullptr;
  MatrixLayout b_ = nullptr, a_ = nullptr, out_ = nullptr;
  bool has_bias_ = false;
  std::vector<Algorithm> algorithms_;
};

}  // namespace sylvite::cuda
