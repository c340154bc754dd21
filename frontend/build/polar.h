#pragma once
// Lengths and angles of points of the plane.

#include "frontend/graph/graph_builder.h"

namespace sylvite {

/// sqrt(x x + y y), of the larger of the two, so that squares do not leave the range of numbers.
[[nodiscard]] Sym hypotenuse(Sym x, Sym y);
/// The angle of (x, y), from -pi to pi: that of the smaller of both over the larger, moved to where they lie.
[[nodiscard]] Sym angle_of(Sym x, Sym y);

}  // namespace sylvite
