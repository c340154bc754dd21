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
  any,     ///< the innermost dim or beside it, or one of channels
  outer,   ///< dims ahead of the last two, which kernels walk
  rows,    ///< the dim ahead of the innermost, where rows are long
  images,  ///< in kernels that have channels in blocks or windows over pixels
  lines,   ///< of such images
  pixels,
  count,  ///< of what a fold adds
  none,   ///< elements ahead of a slice, or around what is padded; may be 0
  edge,   ///< the same along an axis that is cut or padded, and of other extents
  border  ///< the same around what a window moves over
};

/// What the innermost dims of a body's values are.
enum class Rows : std::uint8_t {
  of_images,
  are_long,  ///< of several vectors in every result, or open
  are_short
};

/// What one extent is in each body -> the expression that stands for it; nullopt: there is none.
using JoinExtent = std::function<std::optional<Extent>(const Dims& extents, Axis axis)>;

/// Told of each extent that a type rule gives a joined body, before `join` is asked what it is in each body.
using SuggestExtent = std::function<void(const Extent& extent)>;
/// Told of two numbers that are equal in each body: how many elements a reshape takes, and makes.
using EquateExtents = std::function<void(const Extent& one, const Extent& other)>;
/// The product; nullopt where it has too many terms.
[[nodiscard]] std::optional<Extent> element_count(const Shape& shape);

/// nullopt where the bodies differ in more than extents, and constants that are extents (which become Op::extents), or `join`
/// has no expression for one. The body has no table of
/// symbols yet. REQUIRES a body at least.
[[nodiscard]] std::optional<Graph> join_bodies(const std::vector<const Graph*>& bodies,
                                               const JoinExtent& join, const SuggestExtent& suggest = nullptr,
                                               const EquateExtents& equate = nullptr);

/// What a constant of one element may be of an extent.
enum class CountForm : std::uint8_t {
  number,
  inverse,  ///< one over it: means divide by how much they add
  half      ///< where the middle of what is sampled lies
};
/// The extent of which it is that; nullopt where it is not.
[[nodiscard]] std::optional<std::int64_t> extent_of(const Tensor& constant, CountForm form);
/// How Op::extents computes the elements of its constant.
[[nodiscard]] CountForm count_form(const Attributes& extents);

struct ConstantExtent {
  std::int64_t extent = 1;
  CountForm form = CountForm::number;
};
/// In the first form that it has; nullopt where it has none.
[[nodiscard]] std::optional<ConstantExtent> constant_extent(const Tensor& constant);

/// The same of a type alone: blocks of channels stay numbers.
[[nodiscard]] std::optional<TensorType> join_types(const std::vector<const TensorType*>& types, Rows rows,
                                                   const JoinExtent& join);

}  // namespace sylvite
