#include "base/error.h"
#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/forms.h"
#include "schedules/cuda/library_call.h"
#include "schedules/cuda/library_conv.h"
#include "schedules/cuda/spaces.h"

// Space cudnn: convolutions with an epilogue that cuDNN has, where it may be used (knob schedules.cudnn).
//   engine   which of those that its heuristics propose; one that it does not have fails when it is loaded

namespace sylvite {
namespace {

Binding bind_cudnn(const Kernel& kernel, const Machine& machine) {
  if (!machine.gpu || machine.gpu_tools.cudnn == 0) return {"schedules.cudnn is off"};
  const Reading<LibraryConvProblem> reading = read_library_conv(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  if (std::string refusal = refuse_tf32(reading.problem.element, machine); !refusal.empty()) return {refusal};
  return bind_library_choices(cudnn_form, "engine");
}

}  // namespace

const Space cudnn_space = {"cudnn", bind_cudnn};

CudaTemplate cudnn_template(const Kernel& kernel, const Form& form) {
  const Reading<LibraryConvProblem> reading = read_library_conv(kernel);
  if (!reading.refusal.empty()) throw UnsupportedError("cuDNN cannot take the kernel: {}", reading.refusal);
  CudaTemplate result;
  result.launch.library = LibraryConv{reading.problem, static_cast<std::size_t>(form.at("engine"))};
  return result;
}

}  // namespace sylvite
