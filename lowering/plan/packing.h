#pragma once
// How a template wants a weight to lie in memory: transform, pad, split, permute. Done once, when a program
// is loaded.

#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sylvite/tensor.h"

namespace sylvite {

/// Logical dims (outermost first) are padded with zeros up to multiples of `factors`, each dim with factor >
/// 1 is split into (outer, inner), and the resulting axes are put in the order `order` (outermost first).
/// Axes are numbered 2*d for the outer (or whole) part of dim d, 2*d+1 for its inner part. An inner part may
/// be named twice: first its pairs of neighbours, then the place within a pair. Example: B[K,N] into panels
/// (N/32, K, 32): factors {1, 32}, order {2, 0, 3}.
struct Packing {
  std::vector<std::int64_t> factors;  ///< one per logical dim; 1 leaves the dim whole. Empty: no packing.
  std::vector<int> order;
  /// m of Winograd's F(m x m, 3 x 3): the filter is first made into transform_filter(filter, m), whose dims
  /// are then the logical ones (lowering/plan/winograd.h). 0: the weight as it is.
  int winograd_tile = 0;
  /// More than 1: the filter is of so many groups, and is first made into spread_filter(filter, groups, factors[0])
  /// (lowering/plan/grouped_filter.h).
  std::int64_t filter_groups = 1;

  [[nodiscard]] bool is_identity() const { return factors.empty(); }
  [[nodiscard]] Dims packed_dims(const Dims& dims) const;
  auto operator<=>(const Packing&) const = default;
};

/// The packing that stores a dense tensor as `type.layout` says; identity for dense types. A weight whose
/// type is blocked is a dense tensor in Plan::weights, packed with this.
[[nodiscard]] Packing layout_packing(const TensorType& type);
/// Does `packing` store a value just as its type says?
[[nodiscard]] bool is_layout(const Packing& packing, const TensorType& type);

/// A new tensor of shape packing.packed_dims(tensor.dims()); the tensor itself when the packing is identity.
/// Throws InternalError when the packing does not fit the tensor's rank, and what transform_filter throws.
[[nodiscard]] Tensor pack(const Tensor& tensor, const Packing& packing);
/// The same into `result`, which has that type and holds zeros. REQUIRES !packing.is_identity().
void pack_into(const Tensor& tensor, const Packing& packing, Tensor& result);

}  // namespace sylvite
