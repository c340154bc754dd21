#pragma once
// The generic algorithm of each operation: a table from Op to a function that defines the node's outputs.
// Internal to lowering/.

#include "lowering/algorithms/algorithm_builder.h"

namespace sylvite {

void define_pointwise(AlgorithmBuilder& builder, const Node& node);
void define_iota(AlgorithmBuilder& builder, const Node& node);
void define_movement(AlgorithmBuilder& builder, const Node& node);
void define_gather(AlgorithmBuilder& builder, const Node& node);
void define_scatter(AlgorithmBuilder& builder, const Node& node);
void define_stored_scatter(AlgorithmBuilder& builder, const Node& node);  ///< the fold is the result
void define_reduction(AlgorithmBuilder& builder, const Node& node);
void define_arg_reduction(AlgorithmBuilder& builder, const Node& node);
void define_scan(AlgorithmBuilder& builder, const Node& node);
void define_top_k(AlgorithmBuilder& builder, const Node& node);
void define_softmax(AlgorithmBuilder& builder, const Node& node);
void define_layer_norm(AlgorithmBuilder& builder, const Node& node);
void define_batch_norm(AlgorithmBuilder& builder, const Node& node);
void define_matmul(AlgorithmBuilder& builder, const Node& node);
void define_quantized_matmul(AlgorithmBuilder& builder, const Node& node);
void define_matmul_bits(AlgorithmBuilder& builder, const Node& node);
void define_conv(AlgorithmBuilder& builder, const Node& node);
void define_filter_gradient(AlgorithmBuilder& builder, const Node& node);
void define_max_pool_gradient(AlgorithmBuilder& builder, const Node& node);
void define_pool(AlgorithmBuilder& builder, const Node& node);
void define_attention(AlgorithmBuilder& builder, const Node& node);
void define_attention_sums(AlgorithmBuilder& builder, const Node& node);
void define_attention_gradient(AlgorithmBuilder& builder, const Node& node);

/// The logit of an attention node from the product of a query and a key: scaled, capped, masked. `at` is its
/// place in [..., query, key].
[[nodiscard]] Halide::Expr attention_logit(AlgorithmBuilder& builder, const Node& node,
                                           const Halide::Expr& score, const Coordinates& at);

/// A key for choosing an index: -0 and 0 are equal.
[[nodiscard]] Halide::Expr index_key(const Halide::Expr& x, bool nan_is_largest);

/// The type in which elements are compared: a compute type, or 8 bits for booleans.
[[nodiscard]] Halide::Type folded_type(DType dtype);

/// A coordinate moved by a constant; keeps the split where the offset is a multiple of the block.
[[nodiscard]] Coordinate shifted(const Coordinate& coordinate, std::int64_t offset);

}  // namespace sylvite
