#include "schedules/space.h"

#include <algorithm>

#include "base/error.h"
#include "lowering/plan/run_extents.h"
#include "schedules/cuda/candidate.h"
#include "schedules/cuda/forms.h"
#include "schedules/cuda/image_norm.h"
#include "schedules/cuda/spaces.h"
#include "schedules/spaces/spaces.h"

namespace sylvite {

/// Best first; the first that takes a kernel is what default mode runs. Spaces are defined in space_NAME.cpp.
const std::vector<Space>& space_table() {
  static const std::vector<Space> table = {
      matmul_amx_space,
      matmul_panels_space,
      matmul_amx_activations_space,
      matmul_activations_space,
      matmul_bits_space,
      conv_amx_space,
      conv_lines_amx_space,
      conv_blocked_space,
      depthwise_blocked_space,
      conv_rows_space,
      conv_winograd_space,
      filter_gradient_blocked_space,
      attention_chunks_space,
      attention_rows_space,
      contraction_space,
      normalization_rows_space,
      normalization_columns_space,
      reduction_rows_space,
      reduction_columns_space,
      whole_stages_space,
      layout_tiles_space,
      transpose_tiles_space,
      pointwise_space,
      reference_space,
  };
  return table;
}

const std::vector<Space>& gpu_space_table() {
  static const std::vector<Space> table = {
      cuda_matmul_space,
      cublaslt_space,
      cuda_warps_matmul_space,
      cuda_depthwise_space,
      cuda_grouped_space,
      cuda_pool_gradient_space,
      cuda_conv_space,
      cuda_line_gradient_space,
      cuda_filter_gradient_space,
      cuda_depthwise_gradient_space,
      cuda_warps_conv_space,
      cuda_attention_space,
      cuda_warps_attention_space,
      cuda_attention_gradient_space,
      cuda_norm_space,
      cuda_image_norm_space,
      cuda_softmax_columns_space,
      cuda_row_folds_space,
      gpu_rows_space,
      cuda_columns_space,
      gpu_columns_space,
      gpu_tiles_space,
      cudnn_space,
      cuda_scatter_rows_space,
      cuda_place_space,
      cuda_scatter_folds_space,
      cuda_top_k_space,
      cuda_concat_space,
      cuda_transpose_space,
      gpu_transpose_space,
      gpu_elements_space,
      cuda_pointwise_space,
      gpu_reference_space,
  };
  return table;
}

namespace {

/// Why the space leaves too little open for the kernel; empty when it does not.
std::string open_refusal(const Space& space, const Kernel& kernel) {
  if (!kernel.open || space.open == Space::Open::all) return "";
  if (space.open == Space::Open::none) return "the kernel's sizes are open";
  if (has_counts(kernel)) return "a constant of the kernel is a size of the run";
  return space.open == Space::Open::extents || only_batches_are_open(kernel)
             ? ""
             : "more than the kernel's batch is open";
}

/// Whether `space` should pay where `other` would go first. Kernels that take little time have costs that the
/// estimates do not see, which may be as large as theirs.
bool costs_clearly_less(const BoundSpace& space, const BoundSpace& other, const Kernel& kernel,
                        const Machine& machine) {
  constexpr double least_seconds = 10e-6;
  constexpr double clearly = 0.8;
  if (machine.gpu && kernel.open) return false;  // the templates' estimates are for fixed sizes
  const auto seconds_of = [&](const BoundSpace& each) -> std::optional<double> {
    if (machine.gpu) return cuda_seconds_of(kernel, each.at(each.heuristic), *machine.gpu);
    return each.cost(each.heuristic);
  };
  const std::optional<double> seconds = seconds_of(space), others = seconds_of(other);
  const int threads = machine.gpu ? 1 : machine.threads;
  return seconds && others && *others * threads > least_seconds && *seconds < clearly * *others;
}

}  // namespace

NamedValues named_values(const BoundSpace& space, const Point& point) {
  NamedValues named;
  for (std::size_t i = 0; i < point.size(); ++i) named[space.parameters.at(i).name] = point[i];
  return named;
}

Point point_with(const BoundSpace& space, const NamedValues& replaced) {
  Point point = space.heuristic;
  for (const auto& [name, value] : replaced) {
    const auto parameter = std::ranges::find(space.parameters, name, &Parameter::name);
    if (parameter == space.parameters.end())
      throw UsageError("the space {} has no parameter '{}'", space.name, name);
    point[static_cast<std::size_t>(parameter - space.parameters.begin())] = value;
  }
  return point;
}

Candidate reference_candidate(const Kernel& kernel, const Machine& machine) {
  return machine.gpu ? gpu_reference_space.bind(kernel, machine).space.at({}) : reference_candidate(kernel);
}

std::vector<BoundSpace> spaces_for(const Kernel& kernel, const Machine& machine,
                                   std::vector<Refusal>* refusals) {
  std::vector<BoundSpace> accepted;
  for (const Space& space : machine.gpu ? gpu_space_table() : space_table()) {
    Binding binding{open_refusal(space, kernel)};
    if (binding.refusal.empty()) binding = space.bind(kernel, machine);
    if (!binding.refusal.empty()) {
      if (refusals != nullptr) refusals->push_back({space.name, std::move(binding.refusal)});
      continue;
    }
    binding.space.name = space.name;
    const auto other = std::ranges::find(accepted, space.precedes, &BoundSpace::name);
    const bool goes_first =
        other != accepted.end() && costs_clearly_less(binding.space, *other, kernel, machine);
    accepted.insert(goes_first ? other : accepted.end(), std::move(binding.space));
  }
  return accepted;
}

GradientKernels gradient_kernels(const Machine& machine) {
  if (!machine.gpu) return GradientKernels::blocks;
  return refuse_hopper_template(machine).empty() ? GradientKernels::templates : GradientKernels::none;
}

std::string refuse_product_templates(const Kernel& kernel, const Machine& machine) {
  struct Row {
    KernelClass kind;
    const Space* space;
    std::string (*refuse)(const Kernel&) = nullptr;  ///< what the space takes, but a plan should not have
  };
  // cuDNN's comes after gpu_tiles: default mode does not run it.
  static constexpr Row rows[] = {
      {KernelClass::matmul, &cuda_matmul_space},
      {KernelClass::matmul, &cublaslt_space},
      {KernelClass::matmul, &cuda_warps_matmul_space},
      {KernelClass::convolution, &cuda_conv_space},
      {KernelClass::convolution, &cuda_depthwise_space},
      {KernelClass::convolution, &cuda_grouped_space},
      {KernelClass::convolution, &cuda_warps_conv_space},
      {KernelClass::convolution, &cuda_filter_gradient_space},
      {KernelClass::convolution, &cuda_depthwise_gradient_space},
      {KernelClass::pooling, &cuda_pool_gradient_space},
      {KernelClass::reduction, &cuda_columns_space},
      {KernelClass::reduction, &cuda_row_folds_space},
      {KernelClass::normalization, &cuda_norm_space},
      {KernelClass::normalization, &cuda_image_norm_space, refuse_large_image_norm},
      {KernelClass::normalization, &cuda_softmax_columns_space},
      {KernelClass::scan, &cuda_norm_space},
      {KernelClass::scan, &cuda_softmax_columns_space},
      {KernelClass::attention, &cuda_attention_space},
      {KernelClass::attention, &cuda_warps_attention_space},
      {KernelClass::attention, &cuda_attention_gradient_space},
      {KernelClass::movement, &cuda_scatter_rows_space},
      {KernelClass::movement, &cuda_place_space},
      {KernelClass::movement, &cuda_scatter_folds_space},
      {KernelClass::movement, &cuda_transpose_space},
      {KernelClass::pointwise, &cuda_transpose_space}};
  std::string refusal;
  for (const auto& [kind, space, refuse] : rows) {
    if (kind != kernel.kind) continue;
    std::string own = space->bind(kernel, machine).refusal;
    if (own.empty() && refuse != nullptr) own = refuse(kernel);
    if (own.empty()) return "";
    if (refusal.empty()) refusal = std::move(own);
  }
  return refusal.empty() ? "there is none for its class" : refusal;
}

Candidate default_candidate(const Kernel& kernel, const Machine& machine) {
  const Kernel hinted = at_hints(kernel);  // one candidate, whatever the sizes of this case
  const BoundSpace space = spaces_for(hinted, machine).front();
  return space.at(space.heuristic);
}

}  // namespace sylvite
