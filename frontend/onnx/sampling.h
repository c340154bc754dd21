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
};

/// Samples x [N, C, spatial...] at Q positions per image. `positions` holds, per spatial axis, [N, Q]
/// coordinates in elements (0 is the first). Returns [N, C, Q].
[[nodiscard]] Sym sample(Sym x, const std::vector<Sym>& positions, const Sampling& sampling);

}  // namespace sylvite
