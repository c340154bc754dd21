#include <algorithm>

#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/conv.h"
#include "schedules/cuda/matmul_maps.h"
#include "schedules/cuda/spaces.h"
#include "schedules/cuda/warps.h"

// Products of single warps as spaces: for matmuls and for convolutions.

namespace sylvite {
namespace {

struct WarpsUse {
  const char* form;
  Reading<CudaMatmulProblem> (*read)(const Kernel&);
};
constexpr WarpsUse warps_matmul_use = {cuda_warps_matmul_form, read_cuda_matmul};
constexpr WarpsUse warps_conv_use = {cuda_warps_conv_form, read_cuda_conv};

Form form_of_warps(const char* name, const CudaWarpsChoice& choice) {
  return {name,
          {{"tile_x", choice.tile_x},
           {"tile_y", choice.tile_y},
           {"warps_x", choice.warps_x},
           {"warps_y", choice.warps_y},
           {"parts", choice.parts},
           {"stage_row", choice.stage_row},
           {"stages", choice.stages},
           {"resident", choice.resident},
           {"exact", choice.exact}}};
}

CudaWarpsChoice warps_choice(const Form& form) {
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  return {number("tile_x"),    number("tile_y"), number("warps_x"),  number("warps_y"),   number("parts"),
          number("stage_row"), number("stages"), number("resident"), number("exact") != 0};
}

/// Where Hopper's own template takes the kernel, it is the faster one but for small products.
constexpr std::size_t most_beside_hopper = 3;

/// Rows that a view begins beside a boundary of 16 bytes are better copied: those of other tensors come by fewer bytes.
std::string refuse_offset(const CudaMatmulProblem& problem) {
  for (const MatmulOperand* operand : {&problem.a, &problem.b}) {
    const std::int64_t bytes = operand->offset * static_cast<std::int64_t>(dtype_size(problem.element));
    if (bytes % row_unit_bytes != 0)
      return fmt::format("an operand begins {} bytes inside a tensor, no multiple of {}", bytes,
                         row_unit_bytes);
  }
  return "";
}

Binding bind_warps(const WarpsUse& use, const Kernel& kernel, const Machine& machine) {
  if (std::string refusal = refuse_cuda_template(machine); !refusal.empty()) return {refusal};
  const Reading<CudaMatmulProblem> reading = use.read(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  if (std::string refusal = refuse_offset(reading.problem); !refusal.empty()) return {refusal};
  const bool exact = reading.problem.element == DType::f32 && !machine.tf32;
  std::vector<CudaWarpsChoice> choices = cuda_warps_choices(reading.problem, exact, *machine.gpu);
  if (choices.empty()) return {"no tile fits"};
  if (refuse_hopper_template(machine).empty() && refuse_tensor_maps(reading.problem).empty())
    choices.resize(std::min(most_beside_hopper, choices.size()));
  return bind_choices(*machine.gpu, std::move(choices), [form = use.form](const CudaWarpsChoice& choice) {
    return form_of_warps(form, choice);
  });
}

CudaTemplate make_warps(const WarpsUse& use, const Kernel& kernel, const Form& form) {
  return make_cuda_warps(require_problem(use.read(kernel), use.form), warps_choice(form));
}

/// Nothing for problems that are not `known`.
std::optional<double> clocks_where(const Reading<CudaMatmulProblem>& reading, const Form& form,
                                   const Card& card, bool (*known)(const CudaMatmulProblem&)) {
  if (!reading.refusal.empty()) return std::nullopt;
  const CudaMatmulProblem& problem = reading.problem;
  if (!known(problem) || problem.epilogue_reads_activations || dtype_size(problem.element) != 2)
    return std::nullopt;
  const CudaWarpsChoice choice = warps_choice(form);
  if (!refuse_cuda_warps(problem, choice, card).empty()) return std::nullopt;
  return cuda_warps_clocks(problem, choice, card);
}

}  // namespace

const Space cuda_warps_matmul_space = {cuda_warps_matmul_form,
                                       [](const Kernel& kernel, const Machine& machine) {
                                         return bind_warps(warps_matmul_use, kernel, machine);
                                       },
                                       cuda_matmul_form, Space::Open::extents};
const Space cuda_warps_conv_space = {
    cuda_warps_conv_form,
    [](const Kernel& kernel, const Machine& machine) { return bind_warps(warps_conv_use, kernel, machine); },
    cuda_conv_form, Space::Open::extents};

CudaTemplate cuda_warps_matmul_template(const Kernel& kernel, const Form& form) {
  return make_warps(warps_matmul_use, kernel, form);
}

CudaTemplate cuda_warps_conv_template(const Kernel& kernel, const Form& form) {
  return make_warps(warps_conv_use, kernel, form);
}

std::optional<double> cuda_warps_matmul_form_clocks(const Kernel& kernel, const Form& form,
                                                    const Card& card) {
  return clocks_where(read_cuda_matmul(kernel), form, card, is_narrow);
}

std::optional<double> cuda_warps_conv_form_clocks(const Kernel& kernel, const Form& form, const Card& card) {
  return clocks_where(read_cuda_conv(kernel), form, card, [](const CudaMatmulProblem& problem) {
    return problem.windows && problem.windows->taps() != 1;
  });
}

}  // namespace sylvite
