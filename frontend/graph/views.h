#pragma once
// Chains of views in one order: reshape first, then slice, then transpose. A reshape of a stored value is an
// alias, and slices and transposes inline into readers, so that order lets most chains vanish.

#include <optional>
#include <vector>

#include "sylvite/graph.h"

namespace sylvite {

/// Runs of dims of two shapes with equal products, leftmost first: [6,4] and [2,3,4] give {[6],[2,3]},
/// {[4],[4]}. A run may be empty on one side, against dims of extent 1.
struct DimGroup {
  std::size_t from_begin = 0, from_end = 0;
  std::size_t to_begin = 0, to_end = 0;
};

/// REQUIRES equal element counts, none zero.
[[nodiscard]] std::vector<DimGroup> dim_groups(const Dims& from, const Dims& to);

/// Product of dims[begin..end).
[[nodiscard]] std::int64_t product(const Dims& dims, std::size_t begin, std::size_t end);

/// Product of the dims that are chosen by number.
[[nodiscard]] std::int64_t product_of(const Dims& dims, const Dims& chosen);
/// The dims that are not of one element.
[[nodiscard]] Dims without_ones(Dims dims);

/// reshape(transpose(x, perm), to) as transpose(reshape(x, dims), perm).
struct ReshapedOrder {
  Dims dims, perm;
};
/// Nothing unless dims that the reshape merges are neighbours in x, of dims `source`, in order. REQUIRES no extent zero.
[[nodiscard]] std::optional<ReshapedOrder> reshape_ahead(const Dims& source, const Dims& perm,
                                                         const Dims& to);

/// A value that one node reads, once, so that how it lies disturbs no other reader: with `is_transposed` through a
/// transpose of two dims, which nothing else reads either.
struct OwnOperand {
  ValueId id = no_value;  ///< an input or a constant, or no_value
  bool is_transposed = false;
};
[[nodiscard]] OwnOperand own_operand(const Graph& graph, const IdMap<std::vector<NodeId>>& uses,
                                     ValueId operand);

/// The one operand of pointwise work of one result that is not a constant of one element; no_value where there are more.
[[nodiscard]] ValueId operand_beside_numbers(const Graph& graph, const Node& node);

/// Orders of an image's dims: from [image, channel, line, column] to [image, line, column, channel], and back.
[[nodiscard]] Dims channels_behind();
[[nodiscard]] Dims channels_ahead();

/// The order that takes back what `perm` does.
[[nodiscard]] Dims inverse_order(const Dims& perm);
/// The order that exchanges the last two of so many dims.
[[nodiscard]] Dims last_two_swapped(int rank);

// Each adds what is needed to have the view of a dense value, composed with the views the value already is,
// and returns `id` itself when the view changes nothing. Constants are reshaped at once. REQUIRES no extent
// zero.
[[nodiscard]] ValueId add_reshape(Graph& graph, ValueId id, const Dims& dims);
[[nodiscard]] ValueId add_transpose(Graph& graph, ValueId id, const Dims& perm);
[[nodiscard]] ValueId add_slice(Graph& graph, ValueId id, const Dims& starts, const Dims& sizes,
                                const Dims& steps);
/// The places [start, start + size) of one dim, all of the others.
[[nodiscard]] ValueId add_slice_along(Graph& graph, ValueId id, std::size_t axis, std::int64_t start,
                                      std::int64_t size);

/// Of another type; `id` itself when it has that already.
[[nodiscard]] ValueId add_cast(Graph& graph, ValueId id, DType to);

}  // namespace sylvite
