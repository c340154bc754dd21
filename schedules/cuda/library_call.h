#pragma once
// Kernels that a vendor's library computes instead of one of ours, as data. Arguments are numbered as a
// kernel's: inputs of the body, then its output; -1 is absent.

#include <cstddef>
#include <cstdint>
#include <variant>

#include "sylvite/types.h"

namespace sylvite {

/// A matrix of a product, or one per batch.
struct MatmulOperand {
  int input = 0;                 ///< the argument
  bool depth_fast = true;        ///< k is its innermost dim, else m (or n)
  std::int64_t offset = 0;       ///< elements to the first one
  std::int64_t pitch = 0;        ///< elements from one row of its slow dim to the next
  std::int64_t batch_pitch = 0;  ///< 0: the same for every batch
  std::int64_t each = 1;         ///< neighbouring batches of the product that read one of its own
  std::int64_t period = 0;       ///< where these begin again: how many it has; 0: never
  std::int64_t inner =
      0;  ///< so many of its own lie `batch_pitch` apart, and such runs `outer_pitch`; 0: all are one run
  std::int64_t outer_pitch = 0;
  bool is_weight = false;  ///< no kernel before this one writes it
  /// How many it has of its own where the product has `all`.
  [[nodiscard]] std::int64_t batches(std::int64_t all) const { return period != 0 ? period : all / each; }
  bool operator==(const MatmulOperand&) const = default;
};

/// The epilogues that vendor libraries have: a bias along n, then an activation.
struct SimpleEpilogue {
  enum class Activation : std::uint8_t { none, relu, gelu_tanh };
  int bias = -1;
  DType bias_type = DType::f32;
  Activation activation = Activation::none;
  bool operator==(const SimpleEpilogue&) const = default;
};

/// out[batch, m, n] = epilogue(sum over k of a[batch, m, k] b[batch, k, n]). Operands are bf16, f16, or f32
/// (multiplied as tf32); sums are f32.
struct LibraryMatmulProblem {
  MatmulOperand a, b;
  DType element = DType::bf16;
  DType out = DType::bf16;
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  int out_argument = 0;
  SimpleEpilogue epilogue;
  bool operator==(const LibraryMatmulProblem&) const = default;
};

/// out = relu(conv(images, filter) + residual + bias), where all but the first may be absent. Arguments are
/// of one type, but for the bias; f32 may be multiplied as TF32, sums are f32. Images, residual and output
/// lie as [image][line][column][channel], the filter as pack_for_cuda_conv says,
/// [filter][line][column][channel].
struct LibraryConvProblem {
  int images_argument = 0, filter_argument = 1, bias_argument = -1, residual_argument = -1;
  int out_argument = 2;
  DType element = DType::bf16;
  DType bias_type = DType::bf16;
  Dims images, filter, out;  ///< in the graph's order: images or filters, channels, lines, columns
  Dims strides, dilations;   ///< of lines, then of columns, as what follows
  Dims pads_before, pads_after;
  bool relu = false;
  bool operator==(const LibraryConvProblem&) const = default;
};

/// One of the algorithms that cuBLASLt's heuristics propose, the best first.
struct LibraryMatmul {
  LibraryMatmulProblem problem;
  std::size_t algorithm = 0;
  bool operator==(const LibraryMatmul&) const = default;
};

/// One of the engines that cuDNN's heuristics propose, the best first.
struct LibraryConv {
  LibraryConvProblem problem;
  std::size_t engine = 0;
  bool operator==(const LibraryConv&) const = default;
};

using LibraryCall = std::variant<LibraryMatmul, LibraryConv>;

}  // namespace sylvite
