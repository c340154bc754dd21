#pragma once
// A bound that no real machine beats, to catch broken timings.

#include "lowering/plan/kernel.h"

namespace sylvite {

/// Microseconds below which a timing of the kernel is impossible: a quarter of its multiplications at the
/// peak of a fast core, which depends on the element type. 0 for kernels without contractions.
[[nodiscard]] double least_microseconds(const Kernel& kernel, int threads);

}  // namespace sylvite
