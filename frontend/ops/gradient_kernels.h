#pragma once
// Which gradients stay one operation.

#include <cstdint>

namespace sylvite {

/// Which gradients are operations of their own, as a machine has kernels for them; else they are made of others.
enum class GradientKernels : std::uint8_t {
  none,
  templates,  ///< of images of 16-bit floats and of attention, which have templates on a GPU
  blocks,     ///< of convolutions of f32 by their filters, whose images lie in blocks of channels on a CPU
};

}  // namespace sylvite
