#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/norm.h"
#include "schedules/spaces/spaces.h"

// The row template as spaces. Pointwise work has a space of its own, since Halide's schedules of it are as
// good a first guess.

namespace sylvite {
namespace {

Form form_of(const CudaNormChoice& choice) {
  return {cuda_norm_form,
          {{"threads", choice.threads}, {"rows", choice.rows}, {"streams", choice.streams ? 1 : 0}}};
}

using Rows = CudaChoiceSpace<read_cuda_norm, cuda_norm_choices, form_of>;

std::string refuses_norm(const Kernel& kernel, const Machine& machine) {
  return kernel.kind == KernelClass::normalization ? Rows::refuses(kernel, machine)
                                                   : "it is no normalisation";
}
std::string refuses_pointwise(const Kernel& kernel, const Machine& machine) {
  return kernel.kind == KernelClass::pointwise ? Rows::refuses(kernel, machine) : "it is more than pointwise";
}

}  // namespace

const Space cuda_norm_space = {"cuda_norm", refuses_norm, Rows::parameters, first_choice, Rows::at, nullptr};
const Space cuda_pointwise_space = {"cuda_pointwise", refuses_pointwise, Rows::parameters,
                                    first_choice,     Rows::at,          nullptr};

CudaTemplate cuda_norm_template(const Kernel& kernel, const Form& form) {
  const CudaNormProblem problem = require_problem(read_cuda_norm(kernel), cuda_norm_form);
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  return make_cuda_norm(problem, {number("threads"), number("rows"), number("streams") != 0});
}

}  // namespace sylvite
