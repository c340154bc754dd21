#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/spaces.h"
#include "schedules/cuda/top_k.h"

// The template of the first elements of rows, as a space.

namespace sylvite {
namespace {

Form form_of_top_k(const CudaTopKChoice& choice) {
  return {cuda_top_k_form, {{"threads", choice.threads}, {"rows", choice.rows}}};
}

}  // namespace

const Space cuda_top_k_space = {cuda_top_k_form,
                                bind_template<read_cuda_top_k, cuda_top_k_choices, form_of_top_k>};

CudaTemplate cuda_top_k_template(const Kernel& kernel, const Form& form) {
  const CudaTopKProblem problem = require_problem(read_cuda_top_k(kernel), cuda_top_k_form);
  return make_cuda_top_k(problem, {static_cast<int>(form.at("threads")), static_cast<int>(form.at("rows"))});
}

}  // namespace sylvite
