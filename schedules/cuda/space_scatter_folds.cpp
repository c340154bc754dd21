#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/scatter_folds.h"
#include "schedules/cuda/spaces.h"

// The template of scatters that fold as a space.

namespace sylvite {
namespace {

Form form_of_scatter_folds(const CudaScatterFoldsChoice& choice) {
  return {cuda_scatter_folds_form,
          {{"own", choice.own},
           {"width", choice.width},
           {"segments", choice.segments},
           {"together", choice.together}}};
}

}  // namespace

const Space cuda_scatter_folds_space = {
    cuda_scatter_folds_form,
    bind_template<read_cuda_scatter_folds, cuda_scatter_folds_choices, form_of_scatter_folds>};

CudaTemplate cuda_scatter_folds_template(const Kernel& kernel, const Form& form) {
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  return make_cuda_scatter_folds(require_problem(read_cuda_scatter_folds(kernel), cuda_scatter_folds_form),
                                 {number("own"), number("width"), number("segments"), number("together")});
}

}  // namespace sylvite
