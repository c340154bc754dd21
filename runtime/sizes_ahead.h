#pragma once
// Sizes whose kernels are worth to have before a run asks for them.

#include <vector>

#include "frontend/onnx/model_sizes.h"

namespace sylvite {

/// Sizes at which a model may have other kernels than at its first, in ranges that somebody gave: their ends, and where classes
/// of extents begin (size_class, pixel_class), also of extents that layers halve; with `on_device` where those of a device do
/// (device_class), of which few symbols are combined in each way. Those first whose kernels most sizes run, and few.
[[nodiscard]] std::vector<Sizes> sizes_ahead(const ModelSizes& model, bool on_device);
/// Combinations of sizes evenly apart in these ranges, not in their order: the first few tell of the whole ranges.
[[nodiscard]] std::vector<Sizes> sizes_between(const ModelSizes& model);
/// Combinations of any sizes in these ranges, each once, the least first; always the same ones. In every other one each power of two
/// is as likely, so that what is small counts, too. Empty where nobody gave a range.
[[nodiscard]] std::vector<Sizes> sizes_scattered(const ModelSizes& model, std::size_t count);

}  // namespace sylvite
