#pragma once
// Candidates that are templates in CUDA C++ instead of Halide pipelines: a form with numbers, and no
// schedule.

#include <optional>
#include <vector>

#include "lowering/plan/kernel.h"
#include "lowering/plan/packing.h"
#include "schedules/candidate.h"
#include "schedules/card.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// The text of a candidate whose form is such a template; nothing for candidates that Halide compiles. An open kernel has one
/// text, that at its hints, and the launch at its sizes. Throws UnsupportedError when the template cannot take the kernel, or
/// would have another text at its sizes.
[[nodiscard]] std::optional<CudaTemplate> cuda_template_of(const Kernel& kernel, const Candidate& candidate);
/// What such a template should take for a kernel of fixed sizes, to compare it with other numbers of the same form, or of another
/// that has an estimate for the kernel; nothing where there is none, or it cannot take it.
[[nodiscard]] std::optional<double> cuda_seconds_of(const Kernel& kernel, const Candidate& candidate,
                                                    const Card& card);
/// The packing that such a template wants for each input of the body; nothing for candidates that Halide compiles.
[[nodiscard]] std::optional<std::vector<Packing>> cuda_packings_of(const Kernel& kernel, const Form& form);
/// Whether the candidate rounds f32 operands of the kernel to TF32.
[[nodiscard]] bool multiplies_in_tf32(const Kernel& kernel, const Candidate& candidate);

}  // namespace sylvite
