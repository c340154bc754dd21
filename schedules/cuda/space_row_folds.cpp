#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/row_folds.h"
#include "schedules/cuda/spaces.h"

// The template of rows that are folded and used again, as a space.

namespace sylvite {
namespace {

Form form_of_row_folds(const CudaNormChoice& choice) {
  Form form{cuda_row_folds_form,
            {{"threads", choice.threads}, {"rows", choice.rows}, {"streams", choice.streams ? 1 : 0}}};
  if (choice.items > 0) form.parameters["items"] = choice.items;
  return form;
}

}  // namespace

const Space cuda_row_folds_space = {
    "cuda_row_folds",
    bind_template<read_cuda_row_folds, cuda_row_folds_choices, form_of_row_folds>,
    {},
    Space::Open::extents};

CudaTemplate cuda_row_folds_template(const Kernel& kernel, const Form& form) {
  const CudaRowFoldsProblem problem = require_problem(read_cuda_row_folds(kernel), cuda_row_folds_form);
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  return make_cuda_row_folds(problem, {number("threads"), number("rows"), number("streams") != 0,
                                       form.parameters.contains("items") ? number("items") : 0});
}

}  // namespace sylvite
