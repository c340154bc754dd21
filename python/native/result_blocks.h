#pragma once
// Memory of small results, which comes back when their reader frees them, with all that DLPack says of it.

#include <atomic>
#include <cstddef>
#include <memory>

#include "python/native/dlpack.h"
#include "sylvite/types.h"

namespace sylvite::python {

/// How a reader sees a result.
struct ResultView {
  Dims dims;
  Dims strides;  ///< in elements
  dlpack::DataType type;
};

/// Blocks for one result of a program: to allocate and describe a small one takes longer than to compute it. Blocks outlive
/// this object where readers have them. Thread safety: one thread at a time takes; blocks come back from any.
class ResultBlocks : public std::enable_shared_from_this<ResultBlocks> {
 public:
  /// Of a result: larger ones are rare, and would hold on to much.
  static constexpr std::size_t most_bytes = std::size_t{64} << 10;

  ResultBlocks(std::size_t bytes, ResultView view) : bytes_(bytes), view_(std::move(view)) {}
  ~ResultBlocks();
  ResultBlocks(const ResultBlocks&) = delete;
  ResultBlocks& operator=(const ResultBlocks&) = delete;

  struct alignas(64) Block {
    dlpack::ManagedVersioned managed = {};  ///< its deleter gives the block back
    std::shared_ptr<ResultBlocks> owner;    ///< while it is taken
    Block* next = nullptr;                  ///< while it is not
    [[nodiscard]] void* data() { return this + 1; }
  };
  struct GiveBack {
    void operator()(Block* block) const { give_back(block); }
  };
  using Taken = std::unique_ptr<Block, GiveBack>;

  /// Contents unspecified, 64-byte aligned. Throws std::bad_alloc.
  [[nodiscard]] Taken take();

 private:
  /// So many wait for calls: results of earlier ones may come back all at once.
  static constexpr int most_kept = 4;

  [[nodiscard]] Block* make();
  static void free(Block* block);
  static void give_back(Block* block);

  std::size_t bytes_;
  ResultView view_;
  std::atomic<Block*> first_ = nullptr;
  std::atomic<int> kept_ = 0;
};

}  // namespace sylvite::python
