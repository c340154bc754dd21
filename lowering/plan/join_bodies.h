#pragma once
// Bodies that differ in extents alone as one body, whose extents are expressions.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sylvite/graph.h"

namespace sylvite {

/// What an extent is of.
enum class Axis : std::uint8_t {
  any,
  lines,  ///< of images with their channels in blocks, as in kernels that have such
  pixels
};

/// What one extent is in each body -> the expression that stands for it; nullopt: there is none.
using JoinExtent = std::function<std::optional<Extent>(const Dims& extents, Axis axis)>;

/// nullopt where the bodies differ in more than extents, or `join` has no expression for one. The body has no table of
/// symbols yet. REQUIRES a body at least.
[[nodiscard]] std::optional<Graph> join_bodies(const std::vector<const Graph*>& bodies,
                                               const JoinExtent& join);

/// The same of a type alone: blocks of channels stay numbers.
[[nodiscard]] std::optional<TensorType> join_types(const std::vector<const TensorType*>& types,
                                                   bool has_image, const JoinExtent& join);

}  // namespace sylvite
