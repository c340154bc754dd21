#pragma once
// The order in which elements lie in memory. Where channels are in blocks, the blocks are outermost, and images follow each other
// inside a block: parts of a concat of channels lie side by side, and pixels of all images are one line, whatever the batch is.

#include "lowering/plan/kernel.h"

namespace sylvite {

/// Are channels in blocks, and does the next image follow the last pixel of a block?
[[nodiscard]] bool has_lined_images(const TensorType& type);
/// Do several blocks of channels lie outside of images? Those of one pixel lie as if they were dense: a row of channels for each.
[[nodiscard]] bool has_outer_blocks(const TensorType& type);
/// The same of an argument, which code for many sizes takes as that of images of many pixels.
[[nodiscard]] bool has_outer_blocks(const Kernel& kernel, ValueId argument);

/// Strides in elements of dims as stored, outermost first (TensorType::storage_dims). `has_outer_blocks`: the second of them lies
/// outside of the first.
[[nodiscard]] Shape storage_strides(const Shape& stored, bool has_outer_blocks);
[[nodiscard]] Dims storage_strides(const Dims& stored, bool has_outer_blocks);

}  // namespace sylvite
