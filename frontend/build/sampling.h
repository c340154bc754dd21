#pragma once
// Reading maps at computed positions between their elements, for GridSample and deformable convolution.

#include <string>
#include <vector>

#include "frontend/graph/graph_builder.h"

namespace sylvite {

enum class SamplePadding { zeros, border, reflection };
enum class SampleMode { nearest, linear, cubic };

struct Sampling {
  SampleMode mode = SampleMode::linear;
  SamplePadding padding = SamplePadding::zeros;
  /// Where reflection turns: at the outer elements' centres, or (false) half an element beyond.
  bool align_corners = false;
  /// As torch has it: a position outside is pulled inside before its nearest element is chosen.
  bool pulls_positions = false;
};

/// Samples x [N, C, spatial...] at Q positions per image. `positions` holds, per spatial axis, [N, Q]
/// coordinates in elements (0 is the first). Returns [N, C, Q].
[[nodiscard]] Sym sample(Sym x, const std::vector<Sym>& positions, const Sampling& sampling);

/// The same at the positions of a grid [N, out..., k] in [-1, 1], the last axis of the map first.
[[nodiscard]] Sym grid_sample(Sym x, Sym grid, const Sampling& sampling);

}  // namespace sylvite
