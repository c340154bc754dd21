#pragma once
// Views of an input that a template reads in place: an offset and a stride per dim.

#include <optional>

#include "lowering/plan/kernel.h"

namespace sylvite {

struct StridedView {
  int input = 0;            ///< index into body.inputs
  std::int64_t offset = 0;  ///< elements to the first one
  Dims dims, strides;       ///< outermost first, strides in elements
};

/// How value `id` lies in the input that it is a view of, through transposes, slices, broadcasts (strides of
/// 0) and reshapes that split dims or join those that lie together; nothing when it is computed or lies
/// otherwise.
[[nodiscard]] std::optional<StridedView> strided_view(const Graph& body, ValueId id);

/// Whether the elements along the last dim of value `id` are neighbours in an input, and its places there are
/// even distances apart as kernels compute them: it is no reshape, which takes divisions.
[[nodiscard]] bool reads_rows_in_place(const Graph& body, ValueId id);

}  // namespace sylvite
