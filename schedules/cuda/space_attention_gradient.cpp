#include "schedules/cuda/attention_gradient.h"
#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/spaces.h"

// Gradients of attention as a space.

namespace sylvite {
namespace {

Form form_of_attention_gradient(const CudaAttentionGradientChoice& choice) {
  return {cuda_attention_gradient_form,
          {{"hopper", choice.hopper},
           {"warps", choice.warps},
           {"block", choice.block},
           {"stages", choice.stages},
           {"resident", choice.resident}}};
}

Binding bind_attention_gradient(const Kernel& kernel, const Machine& machine) {
  if (std::string refusal = refuse_cuda_template(machine); !refusal.empty()) return {refusal};
  const Reading<CudaAttentionGradientProblem> reading = read_cuda_attention_gradient(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  return bind_choices(
      *machine.gpu, cuda_attention_gradient_choices(reading.problem, refuse_hopper_template(machine).empty()),
      form_of_attention_gradient);
}

}  // namespace

const Space cuda_attention_gradient_space = {
    cuda_attention_gradient_form, bind_attention_gradient, {}, Space::Open::extents};

CudaTemplate cuda_attention_gradient_template(const Kernel& kernel, const Form& form) {
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  return make_cuda_attention_gradient(
      require_problem(read_cuda_attention_gradient(kernel), cuda_attention_gradient_form),
      {number("hopper") != 0, number("warps"), number("block"), number("stages"), number("resident")});
}

}  // namespace sylvite
