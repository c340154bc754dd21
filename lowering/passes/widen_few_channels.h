#pragma once
// Images with too few channels for tensor cores, as a network's input has.

#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which convolutions (not grouped, with a constant filter) of 16-bit images with fewer
/// than 8 channels read an image padded with zeros: to 4 or 8 channels, and around, so that no window leaves
/// it. With the channels innermost a filter row is then one run in memory; its taps are padded with zeros
/// until the run is a multiple of 16 bytes. `tf32`: f32 images, too, with fewer than 4 channels, are padded
/// to 2 or 4.
[[nodiscard]] Graph widen_few_channels(const Graph& graph, bool tf32 = false);

}  // namespace sylvite
