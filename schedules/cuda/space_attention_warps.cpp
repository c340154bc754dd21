#include <algorithm>

#include "schedules/cuda/attention_warps.h"
#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/spaces.h"

// Attention by products of single warps as a space.

namespace sylvite {
namespace {

Form form_of_attention_warps(const CudaAttentionWarpsChoice& choice) {
  return {cuda_warps_attention_form,
          {{"warps", choice.warps},
           {"sixteens", choice.sixteens},
           {"block", choice.block},
           {"resident", choice.resident},
           {"keeps_queries", choice.keeps_queries}}};
}

/// Hopper's own kernel is the faster one but for small problems.
constexpr std::size_t most_attention_beside_hopper = 2;

Binding bind_attention_warps(const Kernel& kernel, const Machine& machine) {
  if (std::string refusal = refuse_cuda_template(machine); !refusal.empty()) return {refusal};
  const Reading<CudaAttentionProblem> reading = read_cuda_attention(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  if (reading.problem.element == DType::f32) return {"f32 has a kernel of its own"};
  std::vector<CudaAttentionWarpsChoice> choices = attention_warps_choices(reading.problem, *machine.gpu);
  if (choices.empty()) return {"no block fits"};
  if (refuse_hopper_template(machine).empty())
    choices.resize(std::min(most_attention_beside_hopper, choices.size()));
  return bind_choices(*machine.gpu, std::move(choices), form_of_attention_warps);
}

}  // namespace

const Space cuda_warps_attention_space = {
    cuda_warps_attention_form, bind_attention_warps, {}, Space::Open::extents};

CudaTemplate cuda_warps_attention_template(const Kernel& kernel, const Form& form) {
  const CudaAttentionProblem problem =
      require_problem(read_cuda_attention(kernel), cuda_warps_attention_form);
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  return make_attention_warps(problem, {number("warps"), number("sixteens"), number("block"),
                                        number("resident"), number("keeps_queries") != 0});
}

}  // namespace sylvite
