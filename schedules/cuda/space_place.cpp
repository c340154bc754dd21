#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/place.h"
#include "schedules/cuda/spaces.h"

// The template of replaced values as a space.

namespace sylvite {
namespace {

Form form_of_place(const CudaPlaceChoice& choice) {
  return {cuda_place_form, {{"own", choice.own}, {"cluster", choice.cluster}}};
}

}  // namespace

const Space cuda_place_space = {cuda_place_form,
                                bind_cluster_template<read_cuda_place, cuda_place_choices, form_of_place>};

CudaTemplate cuda_place_template(const Kernel& kernel, const Form& form) {
  return make_cuda_place(require_problem(read_cuda_place(kernel), cuda_place_form),
                         {static_cast<int>(form.at("own")), static_cast<int>(form.at("cluster"))});
}

}  // namespace sylvite
