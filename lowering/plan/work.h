#pragma once
// How much a kernel computes and moves, whatever schedule it gets: what its speed is judged by.

#include "lowering/plan/kernel.h"

namespace sylvite {

/// Of one launch. Padding, copies and whatever else a schedule adds do not count.
struct Work {
  /// A product that is added to a sum counts two, every other element of a float result one. Winograd's
  /// convolutions count what they spare, too.
  double operations = 0;
  DType element = DType::f32;  ///< of what is multiplied and added: f32 where nothing is
  /// Inputs and outputs, each once; of what is gathered from, as much as the result has.
  double bytes = 0;
  double weight_bytes = 0;  ///< of these, inputs that are weights: in a large model they come from memory
};
[[nodiscard]] Work work_of(const Kernel& kernel);

}  // namespace sylvite
