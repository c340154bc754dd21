#pragma once
// The fused attention template for Hopper: see schedules/cuda/attention.cuh for what it computes and how.

#include <optional>
#include <string>
#include <vector>

#include "lowering/algorithms/problems.h"
#include "lowering/algorithms/strided_view.h"
#include "schedules/card.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// Of q and k, [batch..., heads, rows, depth]; with rank 3 there is one head.
struct CudaAttentionExtents {
  std::int64_t batch = 1, heads = 1, queries = 0, keys = 0, depth = 0;
};
/// "", or why a template cannot take them. REQUIRES equal ranks of at least 2.
[[nodiscard]] std::string read_attention_extents(const Dims& q, const Dims& k, CudaAttentionExtents& extents);

/// out = softmax(scale q k^T + mask) v over [batch, heads, rows, depth], bf16 or f16, or f32 multiplied in
/// TF32, where values may be wider or narrower than keys but for f32. All four are read and written where they lie: a fused projection of q, k and v, or heads inside
/// rows, need no copies, nor do keys and values that neighbouring heads share.
struct CudaAttentionProblem : CudaAttentionExtents {
  struct Operand {
    int argument = 0;
    std::int64_t offset = 0;                    ///< elements
    std::int64_t batch = 0, head = 0, row = 0;  ///< strides in elements; columns lie together
    std::int64_t share = 1;                     ///< neighbouring heads for which it is the same
  };
  /// Added to the scores, or true where a key is seen; strides over an extent that is broadcast are 0.
  struct Mask {
    int argument = 0;
    DType dtype = DType::bf16;
    std::int64_t batch = 0, head = 0, row = 0;
    std::int64_t share = 1;   ///< neighbours in the batch for which it is the same
    std::int64_t period = 1;  ///< of those: it repeats after so many
  };
  Operand q, k, v, out;
  std::optional<Mask> mask;
  DType element = DType::bf16;
  std::int64_t value_depth = 0;  ///< columns of the values and of the result
  bool causal = false;
  double scale = 1;
  bool is_open = false;        ///< runs give the batch, queries and keys
  std::int64_t most_keys = 0;  ///< in any run
};
[[nodiscard]] Reading<CudaAttentionProblem> read_cuda_attention(const Kernel& kernel);
/// Where a value of rank 3 and more lies, [batch..., heads, rows, depth]; with rank 3 there is one head. "", or why the templates
/// cannot read it there.
/// `in_groups`: [batch..., groups, heads, rows, depth], of which groups and heads are walked as heads.
[[nodiscard]] std::string read_attention_operand(const Graph& body, ValueId id,
                                                 CudaAttentionProblem::Operand& operand,
                                                 bool in_groups = false);
/// The mask of the scores of queries of dims `q`. "", or why the templates cannot read it where it lies.
[[nodiscard]] std::string read_attention_mask(const Graph& body, ValueId id, Dims q, std::int64_t keys,
                                              std::optional<CudaAttentionProblem::Mask>& mask,
                                              bool in_groups = false);
/// The result, perhaps transposed: its strides over the anchor's dims.
[[nodiscard]] std::string read_attention_result(const Kernel& kernel, CudaAttentionProblem::Operand& operand,
                                                bool in_groups = false);

/// The numbers that may vary.
struct CudaAttentionChoice {
  bool whole_keys = false;  ///< all keys of a head at once; else blocks of them through a ring
  int consumers = 2;        ///< warpgroups of 64 queries; 1 for f32
  int block = 128;          ///< keys
  int stages = 2;           ///< of keys, and as many of values
  int resident = 1;         ///< blocks on a multiprocessor, at least; more than 1 with whole_keys or f32

  [[nodiscard]] std::string to_string() const;
  bool operator==(const CudaAttentionChoice&) const = default;
};

/// Why the choice cannot be made for the problem; empty when it can.
[[nodiscard]] std::string refuse_cuda_attention(const CudaAttentionProblem& problem,
                                                const CudaAttentionChoice& choice, const Card& card);
/// REQUIRES refuse_cuda_attention empty.
[[nodiscard]] CudaTemplate make_cuda_attention(const CudaAttentionProblem& problem,
                                               const CudaAttentionChoice& choice, const Card& card);
/// Choices worth racing, the best guess first.
[[nodiscard]] std::vector<CudaAttentionChoice> cuda_attention_choices(const CudaAttentionProblem& problem,
                                                                      const Card& card);

}  // namespace sylvite
