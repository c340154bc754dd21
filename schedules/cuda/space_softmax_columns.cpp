#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/softmax_columns.h"
#include "schedules/cuda/spaces.h"

// The template of softmax and running sums along rows of columns, as a space.

namespace sylvite {
namespace {

Form form_of_softmax_columns(const CudaSoftmaxColumnsChoice& choice) {
  return {cuda_softmax_columns_form,
          {{"vector", choice.vector},
           {"parts", choice.parts},
           {"threads", choice.threads},
           {"streams", choice.streams ? 1 : 0}}};
}

}  // namespace

const Space cuda_softmax_columns_space = {
    "cuda_softmax_columns",
    bind_template<read_cuda_softmax_columns, cuda_softmax_columns_choices, form_of_softmax_columns>,
    {},
    Space::Open::batches};

CudaTemplate cuda_softmax_columns_template(const Kernel& kernel, const Form& form) {
  const CudaSoftmaxColumnsProblem problem =
      require_problem(read_cuda_softmax_columns(kernel), cuda_softmax_columns_form);
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  return make_cuda_softmax_columns(
      problem, {number("vector"), number("parts"), number("threads"), number("streams") != 0});
}

}  // namespace sylvite
