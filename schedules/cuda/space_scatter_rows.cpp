#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/scatter_rows.h"
#include "schedules/cuda/spaces.h"

// The template of scattered rows as a space.

namespace sylvite {
namespace {

Form form_of_scatter_rows(const CudaScatterRowsChoice& choice) {
  return {cuda_scatter_rows_form, {{"rows", choice.rows}}};
}

}  // namespace

const Space cuda_scatter_rows_space = {
    cuda_scatter_rows_form,
    bind_template<read_cuda_scatter_rows, cuda_scatter_rows_choices, form_of_scatter_rows>,
    {},
    Space::Open::extents};

CudaTemplate cuda_scatter_rows_template(const Kernel& kernel, const Form& form) {
  const CudaScatterRowsProblem problem =
      require_problem(read_cuda_scatter_rows(kernel), cuda_scatter_rows_form);
  return make_cuda_scatter_rows(problem, {static_cast<int>(form.at("rows"))});
}

}  // namespace sylvite
