#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/conv.h"
#include "schedules/spaces/spaces.h"

// The tensor-core template as spaces: for matmuls and for convolutions.

namespace sylvite {
namespace {

/// What a kernel is to the template, and what to race.
struct Use {
  const char* form;
  Reading<CudaMatmulProblem> (*read)(const Kernel&);
  std::vector<CudaMatmulChoice> (*choices)(const CudaMatmulProblem&, const CudaCard&);

  [[nodiscard]] std::vector<CudaMatmulChoice> choices_for(const Kernel& kernel,
                                                          const Machine& machine) const {
    return choices(read(kernel).problem, card_of(machine));
  }
};
constexpr Use matmul_use = {cuda_matmul_form, read_cuda_matmul, cuda_matmul_choices};
constexpr Use conv_use = {cuda_conv_form, read_cuda_conv, cuda_conv_choices};

Form form_of(const char* name, const CudaMatmulChoice& choice, const CudaCard& card) {
  return {name,
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

template <const Use& use>
std::string refuses(const Kernel& kernel, const Machine& machine) {
  if (std::string reason = refuse_cuda_template(machine); !reason.empty()) return reason;
  const Reading<CudaMatmulProblem> reading = use.read(kernel);
  if (!reading.refusal.empty()) return reading.refusal;
  if (std::string reason = refuse_tf32(reading.problem.element, machine); !reason.empty()) return reason;
  return use.choices_for(kernel, machine).empty() ? "no tile fits" : "";
}

template <const Use& use>
std::vector<Parameter> parameters(const Kernel& kernel, const Machine& machine) {
  return {choice_parameter(use.choices_for(kernel, machine).size())};
}

template <const Use& use>
Candidate at(const Kernel& kernel, const Machine& machine, const Point& point) {
  return {form_of(use.form, use.choices_for(kernel, machine).at(choice_number(point)), card_of(machine)), {}};
}

CudaTemplate make(const Use& use, const Kernel& kernel, const Form& form) {
  const CudaMatmulProblem problem = require_problem(use.read(kernel), use.form);
  return make_cuda_matmul(problem, choice_of(form), card_of(form));
}

template <const Use& use>
Space space_of() {
  return {use.form, refuses<use>, parameters<use>, first_choice, at<use>, nullptr};
}

}  // namespace

const Space cuda_matmul_space = space_of<matmul_use>();
const Space cuda_conv_space = space_of<conv_use>();

CudaTemplate cuda_matmul_template(const Kernel& kernel, const Form& form) {
  return make(matmul_use, kernel, form);
}

CudaTemplate cuda_conv_template(const Kernel& kernel, const Form& form) {
  return make(conv_use, kernel, form);
}

}  // namespace sylvite
