#pragma once
// Spaces of CUDA C++ templates: their one parameter numbers the choices, the best guess first; the form that
// comes out names the numbers themselves, so that what is stored means the same when the guesses change.
// Internal to schedules/.

#include "base/error.h"
#include "lowering/algorithms/problems.h"
#include "schedules/cuda/forms.h"

namespace sylvite {

/// The heuristic of such a space.
[[nodiscard]] inline Point first_choice(const Kernel& /*kernel*/, const Machine& /*machine*/) {
  return {{"choice", 0}};
}

/// What was read of a kernel. Throws UnsupportedError when the template `form` cannot take it.
template <typename Problem>
[[nodiscard]] Problem require_problem(Reading<Problem> reading, const char* form) {
  if (!reading.refusal.empty())
    throw UnsupportedError("the template {} cannot take the kernel: {}", form, reading.refusal);
  return std::move(reading.problem);
}

/// The functions of a space whose choices depend on the problem alone: `read` finds it in a kernel, `choices`
/// lists what to race, `form_of` names a choice's numbers.
template <auto read, auto choices, auto form_of>
struct CudaChoiceSpace {
  static auto choices_for(const Kernel& kernel) { return choices(read(kernel).problem); }
  static std::string refuses(const Kernel& kernel, const Machine& machine) {
    std::string reason = refuse_cuda_template(machine);
    return reason.empty() ? read(kernel).refusal : reason;
  }
  static std::vector<Parameter> parameters(const Kernel& kernel, const Machine& /*machine*/) {
    return {choice_parameter(choices_for(kernel).size())};
  }
  static Candidate at(const Kernel& kernel, const Machine& /*machine*/, const Point& point) {
    return {form_of(choices_for(kernel).at(choice_number(point))), {}};
  }
};

}  // namespace sylvite
