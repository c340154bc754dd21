#pragma once
// What passes before assign_layouts know of the layouts that it gives where image_layout is channels_last.

#include <cstddef>

#include "sylvite/graph.h"
#include "sylvite/id_map.h"

namespace sylvite {

/// Types that tensor cores multiply. `tf32`: f32, too.
[[nodiscard]] bool is_for_tensor_cores(DType dtype, bool tf32);

/// Elements of 16 bytes, in which copies to and from tensor cores move.
[[nodiscard]] std::int64_t elements_of_vector(DType dtype);

/// [image, channel, line, column], or a volume: [image, channel, frame, line, column].
[[nodiscard]] bool is_image(const TensorType& type);

/// Images of a type and of extents that kernels take with their channels innermost: rows of odd lengths cannot be read in
/// vectors. `tf32`: of f32, too.
[[nodiscard]] bool may_lie_innermost(const TensorType& type, bool tf32);

/// An image's dims of pixels: all but the first two.
[[nodiscard]] Dims pixel_axes(std::size_t rank);
/// Do folds of such an image's pixels leave most of a GPU idle, where the blocks of one cluster take a strip of channels of an
/// image? So it is of large images, of which there are few.
[[nodiscard]] bool has_few_strips(const Dims& image);
/// Orders of an image's dims: from [image, channel, pixels...] to [image, pixels..., channel], and back.
[[nodiscard]] Dims channels_behind(std::size_t rank);
[[nodiscard]] Dims channels_ahead(std::size_t rank);

/// Per value: a convolution's result that may lie so, or one that pointwise work, concats of channels, slices, poolings, pads
/// and gathers of pixels make of such.
[[nodiscard]] IdMap<bool> innermost_images(const Graph& graph, bool tf32);

/// Per value: convolutions read it as images, perhaps behind work on each channel, concats of channels, and what leaves_channels.
[[nodiscard]] IdMap<bool> read_by_convolutions(const Graph& graph);

/// Work on images that treats each channel by itself: poolings, folds of dims of pixels, pads and gathers of pixels.
[[nodiscard]] bool leaves_channels(const Graph& graph, const Node& node);

/// Pointwise work that makes finite numbers of finite ones.
[[nodiscard]] bool stays_finite(const Graph& graph, const Node& node);

/// What an associative reduction gives for groups of an image's channels, [images, groups, 1]: of pixels, then of channels.
[[nodiscard]] ValueId add_group_fold(Graph& graph, Op op, ValueId image, std::int64_t groups);

/// Numbers of groups of channels, at most one for each of `image`'s dims' images and groups, [images or 1, groups or 1] and then
/// ones, as an operand of work on such images.
[[nodiscard]] ValueId add_per_channel(Graph& graph, ValueId groups, const Dims& image);

/// The value with zeros behind its elements, up to `dims`, by a pad.
[[nodiscard]] ValueId add_zeros_behind(Graph& graph, ValueId id, const Dims& dims);

/// The tensor with zeros behind the old elements of each dim. REQUIRES dims no smaller than its own.
[[nodiscard]] Tensor with_zeros_behind(const Tensor& tensor, const Dims& dims);

}  // namespace sylvite
