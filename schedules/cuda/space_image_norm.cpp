#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/image_norm.h"
#include "schedules/cuda/spaces.h"

// The template of images that are normed by groups of their channels, as a space.

namespace sylvite {
namespace {

Form form_of_image_norm(const CudaImageNormChoice& choice) {
  return {
      cuda_image_norm_form,
      {{"lanes", choice.lanes}, {"deep", choice.deep}, {"held", choice.held}, {"cluster", choice.cluster}}};
}

}  // namespace

const Space cuda_image_norm_space = {
    "cuda_image_norm",
    bind_cluster_template<read_cuda_image_norm, cuda_image_norm_choices, form_of_image_norm>,
    {},
    Space::Open::all};

CudaTemplate cuda_image_norm_template(const Kernel& kernel, const Form& form) {
  const CudaImageNormProblem problem = require_problem(read_cuda_image_norm(kernel), cuda_image_norm_form);
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  return make_cuda_image_norm(problem, {number("lanes"), number("deep"), number("held"), number("cluster")});
}

}  // namespace sylvite
