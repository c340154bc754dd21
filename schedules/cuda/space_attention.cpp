#include "schedules/cuda/attention.h"
#include "schedules/cuda/choice_space.h"
#include "schedules/spaces/spaces.h"

// The attention template as a space.

namespace sylvite {
namespace {

std::vector<CudaAttentionChoice> choices_for(const Kernel& kernel, const Machine& machine) {
  return cuda_attention_choices(read_cuda_attention(kernel).problem, card_of(machine));
}

Form form_of(const CudaAttentionChoice& choice, const CudaCard& card) {
  return {cuda_attention_form,
          {{"whole_keys", choice.whole_keys},
           {"consumers", choice.consumers},
           {"block", choice.block},
           {"stages", choice.stages},
           {"resident", choice.resident},
           {"multiprocessors", card.multiprocessors},
           {"shared_bytes", card.shared_bytes}}};
}

CudaAttentionChoice choice_of(const Form& form) {
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  return {number("whole_keys") != 0, number("consumers"), number("block"), number("stages"),
          number("resident")};
}

std::string refuses(const Kernel& kernel, const Machine& machine) {
  if (std::string reason = refuse_cuda_template(machine); !reason.empty()) return reason;
  const Reading<CudaAttentionProblem> reading = read_cuda_attention(kernel);
  if (!reading.refusal.empty()) return reading.refusal;
  return choices_for(kernel, machine).empty() ? "no block fits" : "";
}

std::vector<Parameter> parameters(const Kernel& kernel, const Machine& machine) {
  return {choice_parameter(choices_for(kernel, machine).size())};
}

Candidate at(const Kernel& kernel, const Machine& machine, const Point& point) {
  return {form_of(choices_for(kernel, machine).at(choice_number(point)), card_of(machine)), {}};
}

}  // namespace

const Space cuda_attention_space = {
    .name = "cuda_attention",
    .refuses = refuses,
    .parameters = parameters,
    .heuristic = first_choice,
    .at = at,
    .cost = nullptr,
};

CudaTemplate cuda_attention_template(const Kernel& kernel, const Form& form) {
  const CudaAttentionProblem problem = require_problem(read_cuda_attention(kernel), cuda_attention_form);
  return make_cuda_attention(problem, choice_of(form), card_of(form));
}

}  // namespace sylvite
