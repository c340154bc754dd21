#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/conv.h"
#include "schedules/cuda/matmul_maps.h"
#include "schedules/cuda/spaces.h"

// The tensor-core template as spaces: for matmuls, for convolutions, and for gradients of their filters.

namespace sylvite {
namespace {

constexpr const char* exact_parameter = "exact";  // of the forms of f32 that is multiplied so

/// What a kernel is to the template, and what to race.
struct Use {
  const char* form;
  Reading<CudaMatmulProblem> (*read)(const Kernel&);
  std::vector<CudaMatmulChoice> (*choices)(const CudaMatmulProblem&, const Card&);
  double (*clocks)(const CudaMatmulProblem&, const CudaMatmulChoice&, const Card&) = nullptr;
};
constexpr Use matmul_use = {cuda_matmul_form, read_cuda_matmul, cuda_matmul_choices, cuda_matmul_clocks};
constexpr Use conv_use = {cuda_conv_form, read_cuda_conv, cuda_conv_choices, cuda_conv_clocks};
constexpr Use filter_gradient_use = {cuda_filter_gradient_form, read_cuda_filter_gradient,
                                     cuda_filter_gradient_choices};

Form form_of_matmul(const char* name, const CudaMatmulChoice& choice, bool exact, const Card& card) {
  Form form = {name,
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
  if (exact) form.parameters[exact_parameter] = 1;
  return form;
}

bool is_exact(const Form& form) {
  return form.parameters.contains(exact_parameter);
}

CudaMatmulChoice matmul_choice(const Form& form) {
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

Binding bind_matmul(const Use& use, const Kernel& kernel, const Machine& machine) {
  if (std::string refusal = refuse_hopper_template(machine); !refusal.empty()) return {refusal};
  Reading<CudaMatmulProblem> reading = use.read(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  if (std::string refusal = refuse_tensor_maps(reading.problem); !refusal.empty()) return {refusal};
  const bool exact = reading.problem.element == DType::f32 && !machine.tf32;
  reading.problem.exact = exact;
  const Card& card = *machine.gpu;
  std::vector<CudaMatmulChoice> choices = use.choices(reading.problem, card);
  if (choices.empty()) return {"no tile fits"};
  return bind_choices(card, std::move(choices),
                      [card, exact, form = use.form](const CudaMatmulChoice& choice) {
                        return form_of_matmul(form, choice, exact, card);
                      });
}

CudaTemplate make(const Use& use, const Kernel& kernel, const Form& form) {
  CudaMatmulProblem problem = require_problem(use.read(kernel), use.form);
  problem.exact = is_exact(form);
  return make_cuda_matmul(problem, matmul_choice(form), card_of(form));
}

std::optional<double> clocks(const Use& use, const Kernel& kernel, const Form& form, const Card& card) {
  Reading<CudaMatmulProblem> reading = use.read(kernel);
  reading.problem.exact = is_exact(form);
  if (!reading.refusal.empty()) return std::nullopt;
  const CudaMatmulChoice choice = matmul_choice(form);
  if (!refuse_cuda_matmul(reading.problem, choice, card).empty()) return std::nullopt;
  return use.clocks(reading.problem, choice, card);
}

}  // namespace

const Space cuda_matmul_space = {
    cuda_matmul_form,
    [](const Kernel& kernel, const Machine& machine) { return bind_matmul(matmul_use, kernel, machine); },
    {},
    Space::Open::extents};
const Space cuda_conv_space = {
    cuda_conv_form,
    [](const Kernel& kernel, const Machine& machine) { return bind_matmul(conv_use, kernel, machine); },
    {},
    Space::Open::extents};
const Space cuda_filter_gradient_space = {cuda_filter_gradient_form,
                                          [](const Kernel& kernel, const Machine& machine) {
                                            return bind_matmul(filter_gradient_use, kernel, machine);
                                          },
                                          {},
                                          Space::Open::extents};

CudaTemplate cuda_matmul_template(const Kernel& kernel, const Form& form) {
  return make(matmul_use, kernel, form);
}

CudaTemplate cuda_conv_template(const Kernel& kernel, const Form& form) {
  return make(conv_use, kernel, form);
}

std::optional<double> cuda_matmul_form_clocks(const Kernel& kernel, const Form& form, const Card& card) {
  return clocks(matmul_use, kernel, form, card);
}

std::optional<double> cuda_conv_form_clocks(const Kernel& kernel, const Form& form, const Card& card) {
  return clocks(conv_use, kernel, form, card);
}

CudaTemplate cuda_filter_gradient_template(const Kernel& kernel, const Form& form) {
  return make(filter_gradient_use, kernel, form);
}

}  // namespace sylvite
