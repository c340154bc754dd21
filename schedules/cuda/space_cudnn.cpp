#include "base/error.h"
#include "schedules/cuda/forms.h"
#include "schedules/cuda/library_conv.h"
#include "schedules/spaces/spaces.h"

// Space cudnn: convolutions with an epilogue that cuDNN has, where it may be used (knob schedules.cudnn).
//   engine   which of those that its heuristics propose; one that it does not have fails when it is loaded

namespace sylvite {
namespace {

std::string refuses(const Kernel& kernel, const Machine& machine) {
  if (!machine.gpu || machine.gpu->cudnn == 0) return "schedules.cudnn is off";
  const Reading<LibraryConvProblem> reading = read_library_conv(kernel);
  return reading.refusal.empty() ? refuse_tf32(reading.problem.element, machine) : reading.refusal;
}

std::vector<Parameter> parameters(const Kernel& /*kernel*/, const Machine& /*machine*/) {
  return {{"engine", {0, 1, 2, 3, 4, 5, 6, 7}}};
}

Candidate at(const Kernel& /*kernel*/, const Machine& /*machine*/, const Point& point) {
  return {{cudnn_form, {{"engine", get(point, "engine")}}}, {}};
}

}  // namespace

const Space cudnn_space = {
    .name = "cudnn",
    .refuses = refuses,
    .parameters = parameters,
    .heuristic = [](const Kernel&, const Machine&) { return Point{{"engine", 0}}; },
    .at = at,
    .cost = nullptr,
};

CudaTemplate cudnn_template(const Kernel& kernel, const Form& form) {
  const Reading<LibraryConvProblem> reading = read_library_conv(kernel);
  if (!reading.refusal.empty()) throw UnsupportedError("cuDNN cannot take the kernel: {}", reading.refusal);
  CudaTemplate result;
  result.launch.library = LibraryConv{reading.problem, static_cast<std::size_t>(form.at("engine"))};
  return result;
}

}  // namespace sylvite
