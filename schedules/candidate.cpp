#include "schedules/candidate.h"

#include <algorithm>

#include "base/error.h"
#include "schedules/spaces/space_conv_amx.h"
#include "schedules/spaces/spaces.h"

namespace sylvite {

std::string Candidate::to_string() const {
  return "form: " + form.to_string() + "\n" + schedule.to_string();
}

Candidate Candidate::parse(std::string_view text) {
  constexpr std::string_view prefix = "form: ";
  if (!text.starts_with(prefix))
    throw ModelError("a candidate starts with 'form: NAME', got '{}'", text.substr(0, 40));
  const std::size_t end = text.find('\n');
  Candidate candidate;
  candidate.form =
      Form::parse(text.substr(prefix.size(), end == std::string_view::npos ? end : end - prefix.size()));
  if (end != std::string_view::npos) candidate.schedule = Schedule::parse(text.substr(end + 1));
  return candidate;
}

namespace {

/// Winograd's convolutions go first where they should pay clearly: where the products are many, for the
/// transforms cost as much in small convolutions, and by the estimates of both spaces.
bool winograd_pays(const Kernel& kernel, const Machine& machine) {
  const auto seconds = [&](const Space& space) {
    return space.cost(kernel, machine, space.heuristic(kernel, machine));
  };
  constexpr double least_seconds = 10e-6;
  constexpr double clearly = 0.8;
  const double direct = seconds(conv_blocked_space);
  return direct * machine.threads > least_seconds && seconds(conv_winograd_space) < clearly * direct;
}

}  // namespace

/// Best first; the first that takes a kernel is what default mode runs, but for Winograd's convolutions,
/// which go first where they should pay. Spaces are defined in space_NAME.cpp.
const std::vector<Space>& space_table() {
  static const std::vector<Space> table = {
      matmul_amx_space,
      matmul_panels_space,
      matmul_amx_activations_space,
      matmul_activations_space,
      conv_amx_space,
      conv_lines_amx_space,
      conv_blocked_space,
      depthwise_blocked_space,
      conv_rows_space,
      conv_winograd_space,
      attention_rows_space,
      contraction_space,
      normalization_rows_space,
      normalization_columns_space,
      reduction_rows_space,
      reduction_columns_space,
      whole_stages_space,
      layout_tiles_space,
      pointwise_space,
      reference_space,
  };
  return table;
}

const std::vector<Space>& gpu_space_table() {
  static const std::vector<Space> table = {
      cuda_matmul_space,  cublaslt_space,       cuda_conv_space,      cuda_attention_space,
      cuda_norm_space,    gpu_rows_space,       cuda_columns_space,   gpu_columns_space,
      gpu_tiles_space,    cudnn_space,          cuda_transpose_space, gpu_transpose_space,
      gpu_elements_space, cuda_pointwise_space, gpu_reference_space,
  };
  return table;
}

Candidate reference_candidate(const Kernel& kernel, const Machine& machine) {
  return machine.gpu ? gpu_reference_space.at(kernel, machine, {}) : reference_candidate(kernel);
}

std::vector<const Space*> spaces_for(const Kernel& kernel, const Machine& machine,
                                     std::vector<Refusal>* refusals) {
  std::vector<const Space*> accepted;
  for (const Space& space : machine.gpu ? gpu_space_table() : space_table()) {
    const std::string reason = space.refuses(kernel, machine);
    if (reason.empty())
      accepted.push_back(&space);
    else if (refusals != nullptr)
      refusals->push_back({space.name, reason});
  }
  const auto place = [&](const Space& wanted) {
    return std::find_if(accepted.begin(), accepted.end(),
                        [&](const Space* space) { return space->name == wanted.name; });
  };
  const auto direct = place(conv_blocked_space);
  const auto winograd = place(conv_winograd_space);
  const bool are_both = direct < winograd && winograd != accepted.end();
  if (are_both && winograd_pays(kernel, machine)) std::rotate(direct, winograd, winograd + 1);
  return accepted;
}

Candidate default_candidate(const Kernel& kernel, const Machine& machine) {
  const Space* space = spaces_for(kernel, machine).front();
  return space->at(kernel, machine, space->heuristic(kernel, machine));
}

}  // namespace sylvite
