#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/line_gradient.h"
#include "schedules/cuda/spaces.h"

// Gradients of filters of few channels as a space.

namespace sylvite {
namespace {

Form form_of_line_gradient(const CudaLineGradientChoice& choice) {
  return {cuda_line_gradient_form,
          {{"rows", choice.rows},
           {"sides", choice.sides},
           {"chunk", choice.chunk},
           {"resident", choice.resident}}};
}

}  // namespace

const Space cuda_line_gradient_space = {
    cuda_line_gradient_form,
    bind_template<read_cuda_line_gradient, cuda_line_gradient_choices, form_of_line_gradient>,
    {},
    Space::Open::extents};

CudaTemplate cuda_line_gradient_template(const Kernel& kernel, const Form& form) {
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  return make_cuda_line_gradient(require_problem(read_cuda_line_gradient(kernel), cuda_line_gradient_form),
                                 {number("rows"), number("sides"), number("chunk"), number("resident")});
}

}  // namespace sylvite
