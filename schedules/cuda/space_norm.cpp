#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/norm.h"
#include "schedules/cuda/spaces.h"

// The row template as spaces. Pointwise work has a space of its own, since Halide's schedules of it are as
// good a first guess.

namespace sylvite {
namespace {

Form form_of_norm(const CudaNormChoice& choice) {
  Form form = {cuda_norm_form,
               {{"threads", choice.threads}, {"rows", choice.rows}, {"streams", choice.streams ? 1 : 0}}};
  if (choice.items > 0) form.parameters["items"] = choice.items;
  return form;
}

Binding bind_rows(const Kernel& kernel, const Machine& machine) {
  if (kernel.kind != KernelClass::normalization && kernel.kind != KernelClass::scan)
    return {"it is no normalisation"};
  return bind_template<read_cuda_norm, cuda_norm_choices, form_of_norm>(kernel, machine);
}

Binding bind_pointwise(const Kernel& kernel, const Machine& machine) {
  if (kernel.kind != KernelClass::pointwise) return {"it is more than pointwise"};
  return bind_template<read_cuda_norm, cuda_norm_choices, form_of_norm>(kernel, machine);
}

}  // namespace

const Space cuda_norm_space = {"cuda_norm", bind_rows, {}, Space::Open::extents};
const Space cuda_pointwise_space = {"cuda_pointwise", bind_pointwise, {}, Space::Open::extents};

CudaTemplate cuda_norm_template(const Kernel& kernel, const Form& form) {
  const CudaNormProblem problem = require_problem(read_cuda_norm(kernel), cuda_norm_form);
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  const int items = problem.has_open_columns ? number("items") : 0;
  return make_cuda_norm(problem, {number("threads"), number("rows"), number("streams") != 0, items});
}

}  // namespace sylvite
