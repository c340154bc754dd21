#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/columns.h"
#include "schedules/cuda/spaces.h"

// The column template as a space.

namespace sylvite {
namespace {

Form form_of_columns(const CudaColumnsChoice& choice) {
  return {cuda_columns_form,
          {{"lanes", choice.lanes},
           {"deep", choice.deep},
           {"unroll", choice.unroll},
           {"cluster", choice.cluster},
           {"streams", choice.streams}}};
}

}  // namespace

const Space cuda_columns_space = {
    "cuda_columns",
    bind_cluster_template<read_cuda_columns, cuda_columns_choices, form_of_columns>,
    {},
    Space::Open::all};

CudaTemplate cuda_columns_template(const Kernel& kernel, const Form& form) {
  const CudaColumnsProblem problem = require_problem(read_cuda_columns(kernel), cuda_columns_form);
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  return make_cuda_columns(problem, {number("lanes"), number("deep"), number("unroll"), number("cluster"),
                                     form.at("streams") != 0});
}

}  // namespace sylvite
