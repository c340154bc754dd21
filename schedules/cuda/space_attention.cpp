#include "schedules/cuda/attention.h"
#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/spaces.h"

// The attention template as a space.

namespace sylvite {
namespace {

Form form_of_attention(const CudaAttentionChoice& choice, const Card& card) {
  return {cuda_attention_form,
          {{"whole_keys", choice.whole_keys},
           {"consumers", choice.consumers},
           {"block", choice.block},
           {"stages", choice.stages},
           {"resident", choice.resident},
           {"multiprocessors", card.multiprocessors},
           {"shared_bytes", card.shared_bytes}}};
}

CudaAttentionChoice attention_choice(const Form& form) {
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  return {number("whole_keys") != 0, number("consumers"), number("block"), number("stages"),
          number("resident")};
}

Binding bind_attention(const Kernel& kernel, const Machine& machine) {
  if (std::string refusal = refuse_cuda_template(machine); !refusal.empty()) return {refusal};
  const Reading<CudaAttentionProblem> reading = read_cuda_attention(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  if (std::string refusal = reading.problem.element == DType::f32 ? "" : refuse_hopper_template(machine);
      !refusal.empty())
    return {refusal};
  const Card& card = *machine.gpu;
  std::vector<CudaAttentionChoice> choices = cuda_attention_choices(reading.problem, card);
  if (choices.empty()) return {"no block fits"};
  return bind_choices(card, std::move(choices),
                      [card](const CudaAttentionChoice& choice) { return form_of_attention(choice, card); });
}

}  // namespace

const Space cuda_attention_space = {"cuda_attention", bind_attention, {}, Space::Open::extents};

CudaTemplate cuda_attention_template(const Kernel& kernel, const Form& form) {
  const CudaAttentionProblem problem = require_problem(read_cuda_attention(kernel), cuda_attention_form);
  return make_cuda_attention(problem, attention_choice(form), card_of(form));
}

}  // namespace sylvite
