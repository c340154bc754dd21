#pragma once
// How a candidate wants the weights of its kernel to lie in memory.

#include <vector>

#include "lowering/algorithms/form.h"
#include "lowering/plan/kernel.h"
#include "lowering/plan/packing.h"

namespace sylvite {

/// The packing that `form` wants for each input of the body (identity for activations), whether Halide compiles it or
/// it is a template in CUDA C++. Throws UnsupportedError for a form that there is not.
[[nodiscard]] std::vector<Packing> packings_of(const Kernel& kernel, const Form& form);

}  // namespace sylvite
