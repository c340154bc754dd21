#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/concat.h"
#include "schedules/cuda/spaces.h"

// The concat template as a space.

namespace sylvite {
namespace {

Form form_of_concat(const CudaConcatChoice& choice) {
  return {cuda_concat_form, {{"items", choice.items}, {"threads", choice.threads}}};
}

}  // namespace

const Space cuda_concat_space = {"cuda_concat",
                                 bind_template<read_cuda_concat, cuda_concat_choices, form_of_concat>,
                                 {},
                                 Space::Open::extents};

CudaTemplate cuda_concat_template(const Kernel& kernel, const Form& form) {
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  return make_cuda_concat(require_problem(read_cuda_concat(kernel), cuda_concat_form),
                          {number("items"), number("threads")});
}

}  // namespace sylvite
