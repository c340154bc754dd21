#pragma once
// Type and shape rules of the op table, grouped by family. Each returns the types of a node's outputs, dense
// unless said otherwise, and throws ModelError for types or attributes that do not fit.
//
// Rules ignore layouts, but pointwise operations, batch_norm, convolution, pooling, concat and reductions
// that keep the channel dimension hand a blocked layout on, because lowering assigns layouts by running the
// rules again. An absent optional input comes as a nullptr or is missing at the end.
//
// Extents may be expressions. A rule asks `symbols` where it compares two: see sylvite/symbols.h.

#include <span>
#include <string>
#include <vector>

#include "frontend/ops/op_table.h"
#include "sylvite/attributes.h"
#include "sylvite/symbols.h"

namespace sylvite {

using OutputTypes = std::vector<TensorType>;

// Pointwise.
[[nodiscard]] OutputTypes infer_real_unary(Op, InputTypes, const Attributes&, Symbols&);  ///< floats only
[[nodiscard]] OutputTypes infer_numeric_unary(Op, InputTypes, const Attributes&,
                                              Symbols&);  ///< anything but booleans
[[nodiscard]] OutputTypes infer_bitwise_unary(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_logical_unary(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_classify(Op, InputTypes, const Attributes&, Symbols&);  ///< float to boolean
[[nodiscard]] OutputTypes infer_cast(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_bitcast(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_arithmetic(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_equality(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_ordering(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_logical(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_bitwise(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_where(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_round(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_random_bits(Op, InputTypes, const Attributes&, Symbols&);

// Creation and movement.
[[nodiscard]] OutputTypes infer_iota(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_extents(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_reshape(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_transpose(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_broadcast_to(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_slice(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_pad(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_concat(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_to_layout(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_gather(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_gather_elements(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_gather_nd(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_scatter_elements(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_scatter_nd(Op, InputTypes, const Attributes&, Symbols&);

// Reductions, scans, orderings, normalisations.
[[nodiscard]] OutputTypes infer_reduce(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_arg_reduce(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_scan(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_top_k(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_softmax(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_axis_norm(Op, InputTypes, const Attributes&,
                                          Symbols&);  ///< layer_norm and rms_norm
[[nodiscard]] OutputTypes infer_batch_norm(Op, InputTypes, const Attributes&, Symbols&);

// Contractions and windows.
[[nodiscard]] OutputTypes infer_matmul(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_quantized_matmul(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_matmul_bits(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_conv(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_max_pool_gradient(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_attention_sums(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_attention_gradient(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_filter_gradient(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_pool(Op, InputTypes, const Attributes&, Symbols&);
[[nodiscard]] OutputTypes infer_attention(Op, InputTypes, const Attributes&, Symbols&);

// Control.
[[nodiscard]] OutputTypes infer_loop(Op, InputTypes, const Attributes&, Symbols&);

// Shared by the rules and by importers.

/// The numpy broadcast of two shapes; throws ModelError naming both. Of two extents that are not known to be 1
/// or equal, they are taken to be equal.
[[nodiscard]] Shape broadcast_shapes(const Shape& a, const Shape& b, Symbols& symbols);
[[nodiscard]] bool broadcasts_to(const Shape& from, const Shape& to, Symbols& symbols);
/// True when optional input i was given.
[[nodiscard]] bool is_given(InputTypes inputs, std::size_t i);
/// An attribute that names an axis of a value of that rank: throws ModelError unless 0 <= axis < rank.
[[nodiscard]] std::size_t checked_axis(const Attributes& attributes, int rank);
/// A list attribute of that many entries, each within [low, high]; throws ModelError otherwise.
[[nodiscard]] const std::vector<std::int64_t>& checked_list(const Attributes& attributes,
                                                            const std::string& name, std::size_t size,
                                                            std::int64_t low, std::int64_t high);
/// The same for a list that may hold expressions, which lie in no range yet.
[[nodiscard]] std::vector<Extent> checked_extents(const Attributes& attributes, const std::string& name,
                                                  std::size_t size, std::int64_t low, std::int64_t high);
/// A list of extents that is a shape.
[[nodiscard]] Shape checked_shape(const Attributes& attributes, const std::string& name);
/// Throws ModelError when the product of known extents is negative or does not fit.
void check_size(const TensorType& type);
void require_same_dtype(const TensorType& a, const TensorType& b, std::string_view what);
/// As require_same_dtype, but data in bf16 may meet parameters in f32.
void require_parameter_dtype(const TensorType& x, const TensorType& parameter, std::string_view what);

/// Has each of a convolution's `filters` one channel? Beside data in bf16 such may be f32.
[[nodiscard]] bool multiplies_by_channel(const TensorType& filters, const Attributes& attributes);

/// No attribute or extent may be larger, so that sums and products of a few of them cannot overflow.
inline constexpr int most_dims = 64;  ///< as numpy and PyTorch; each costs time in every stage
inline constexpr std::int64_t extent_limit = std::int64_t{1} << 31;

}  // namespace sylvite
