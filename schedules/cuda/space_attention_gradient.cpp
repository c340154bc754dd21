#include "schedules/cuda/attention_gradient.h"
#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/spaces.h"

// Gradients of attention as a space.

namespace sylvite {
namespace {

Form form_of(const CudaAttentionGradientChoice& choice) {
  return {cuda_attention_gradient_form,
          {{"warps", choice.warps}, {"block", choice.block}, {"resident", choice.resident}}};
}

}  // namespace

const Space cuda_attention_gradient_space = {
    cuda_attention_gradient_form,
    bind_template<read_cuda_attention_gradient, cuda_attention_gradient_choices, form_of>};

CudaTemplate cuda_attention_gradient_template(const Kernel& kernel, const Form& form) {
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  return make_cuda_attention_gradient(
      require_problem(read_cuda_attention_gradient(kernel), cuda_attention_gradient_form),
      {number("warps"), number("block"), number("resident")});
}

}  // namespace sylvite
