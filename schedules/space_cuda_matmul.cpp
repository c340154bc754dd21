#include "base/error.h"
#include "schedules/cuda_forms.h"
#include "schedules/cuda_matmul.h"
#include "schedules/spaces.h"

// The tensor-core template as a space. Its one parameter numbers the choices, the best guess first; the form
// that comes out names the numbers themselves, so that what is stored means the same when the guesses change.

namespace sylvite {
namespace {

std::vector<CudaMatmulChoice> choices_for(const Kernel& kernel, const Machine& machine) {
  return cuda_matmul_choices(read_cuda_matmul(kernel).problem, card_of(machine));
}

Form form_of(const CudaMatmulChoice& choice, const CudaCard& card) {
  return {cuda_matmul_form,
          {{"tile_x", choice.tile_x},
           {"tile_y", choice.tile_y},
           {"cluster_x", choice.cluster_x},
           {"cluster_y", choice.cluster_y},
           {"split", choice.split},
           {"ping_pong", choice.ping_pong},
           {"swapped", choice.swapped},
           {"group_rows", choice.group_rows},
           {"multiprocessors", card.multiprocessors},
           {"shared_bytes", card.shared_bytes}}};
}

CudaMatmulChoice choice_of(const Form& form) {
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  CudaMatmulChoice choice;
  choice.tile_x = number("tile_x");
  choice.tile_y = number("tile_y");
  choice.cluster_x = number("cluster_x");
  choice.cluster_y = number("cluster_y");
  choice.split = number("split");
  choice.ping_pong = number("ping_pong") != 0;
  choice.swapped = number("swapped") != 0;
  choice.group_rows = number("group_rows");
  return choice;
}

std::string refuses(const Kernel& kernel, const Machine& machine) {
  if (std::string reason = refuse_cuda_template(machine); !reason.empty()) return reason;
  const Reading<CudaMatmulProblem> reading = read_cuda_matmul(kernel);
  if (!reading.refusal.empty()) return reading.refusal;
  if (reading.problem.element == DType::f32)
    return "its operands are f32, which tensor cores would round to tf32";
  return choices_for(kernel, machine).empty() ? "no tile fits" : "";
}

std::vector<Parameter> parameters(const Kernel& kernel, const Machine& machine) {
  return {choice_parameter(choices_for(kernel, machine).size())};
}

Candidate at(const Kernel& kernel, const Machine& machine, const Point& point) {
  return {form_of(choices_for(kernel, machine).at(choice_number(point)), card_of(machine)), {}};
}

}  // namespace

const Space cuda_matmul_space = {
    .name = "cuda_matmul",
    .refuses = refuses,
    .parameters = parameters,
    .heuristic = [](const Kernel&, const Machine&) { return Point{{"choice", 0}}; },
    .at = at,
    .cost = nullptr,
};

CudaTemplate cuda_matmul_template(const Kernel& kernel, const Form& form) {
  const Reading<CudaMatmulProblem> reading = read_cuda_matmul(kernel);
  if (!reading.refusal.empty())
    throw UnsupportedError("the matmul template cannot take the kernel: {}", reading.refusal);
  return make_cuda_matmul(reading.problem, choice_of(form), card_of(form));
}

}  // namespace sylvite
