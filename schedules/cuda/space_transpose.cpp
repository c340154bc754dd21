#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/spaces.h"
#include "schedules/cuda/transpose.h"

// The transpose template as a space.

namespace sylvite {
namespace {

Form form_of_transpose(const CudaTransposeChoice& choice) {
  return {cuda_transpose_form,
          {{"down", choice.down},
           {"across", choice.across},
           {"rows_first", choice.rows_first},
           {"streams", choice.streams}}};
}

}  // namespace

const Space cuda_transpose_space = {
    "cuda_transpose",
    bind_template<read_cuda_transpose, cuda_transpose_choices, form_of_transpose>,
    {},
    Space::Open::extents};

CudaTemplate cuda_transpose_template(const Kernel& kernel, const Form& form) {
  const CudaTransposeProblem problem = require_problem(read_cuda_transpose(kernel), cuda_transpose_form);
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  return make_cuda_transpose(
      problem, {number("down"), number("across"), form.at("rows_first") != 0, number("streams")});
}

}  // namespace sylvite
