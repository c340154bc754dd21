#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/row_folds.h"
#include "schedules/cuda/spaces.h"

// The template of rows that are folded and used again, as a space.

namespace sylvite {
namespace {

Form form_of_row_folds(const CudaRowFoldsChoice& choice) {
  Form form{cuda_row_folds_form,
            {{"threads", choice.threads}, {"rows", choice.rows}, {"streams", choice.streams ? 1 : 0}}};
  if (choice.items > 0) form.parameters["items"] = choice.items;
  if (choice.cluster > 1) form.parameters["cluster"] = choice.cluster;
  return form;
}

}  // namespace

const Space cuda_row_folds_space = {
    "cuda_row_folds",
    bind_cluster_template<read_cuda_row_folds, cuda_row_folds_choices, form_of_row_folds>,
    {},
    Space::Open::all};

CudaTemplate cuda_row_folds_template(const Kernel& kernel, const Form& form) {
  const CudaRowFoldsProblem problem = require_problem(read_cuda_row_folds(kernel), cuda_row_folds_form);
  const auto number = [&](const char* name, int absent) {
    return form.parameters.contains(name) ? static_cast<int>(form.at(name)) : absent;
  };
  const CudaNormChoice rows = {number("threads", 0), number("rows", 0), number("streams", 0) != 0,
                               number("items", 0)};
  return make_cuda_row_folds(problem, {rows, number("cluster", 1)});
}

}  // namespace sylvite
