#include "base/error.h"
#include "schedules/cuda_forms.h"
#include "schedules/cuda_norm.h"
#include "schedules/spaces.h"

// The row template as spaces: their one parameter numbers the choices, as that of space_cuda_matmul.cpp does.
// Pointwise work has a space of its own, since Halide's schedules of it are as good a first guess.

namespace sylvite {
namespace {

std::vector<CudaNormChoice> choices_for(const Kernel& kernel) {
  return cuda_norm_choices(read_cuda_norm(kernel).problem);
}

std::string refuses(const Kernel& kernel, const Machine& machine) {
  if (std::string reason = refuse_cuda_template(machine); !reason.empty()) return reason;
  return read_cuda_norm(kernel).refusal;
}

std::string refuses_norm(const Kernel& kernel, const Machine& machine) {
  return kernel.kind == KernelClass::normalization ? refuses(kernel, machine) : "it is no normalisation";
}
std::string refuses_pointwise(const Kernel& kernel, const Machine& machine) {
  return kernel.kind == KernelClass::pointwise ? refuses(kernel, machine) : "it is more than pointwise";
}

std::vector<Parameter> parameters(const Kernel& kernel, const Machine& /*machine*/) {
  return {choice_parameter(choices_for(kernel).size())};
}

Point heuristic(const Kernel& /*kernel*/, const Machine& /*machine*/) {
  return {{"choice", 0}};
}

Candidate at(const Kernel& kernel, const Machine& /*machine*/, const Point& point) {
  const CudaNormChoice choice = choices_for(kernel).at(choice_number(point));
  return {{cuda_norm_form,
           {{"threads", choice.threads},
            {"rows", choice.rows},
            {"streams", choice.streams},
            {"stages", choice.stages},
            {"chain", choice.chain}}},
          {}};
}

}  // namespace

const Space cuda_norm_space = {"cuda_norm", refuses_norm, parameters, heuristic, at, nullptr};
const Space cuda_pointwise_space = {"cuda_pointwise", refuses_pointwise, parameters, heuristic, at, nullptr};

CudaTemplate cuda_norm_template(const Kernel& kernel, const Form& form) {
  const Reading<CudaNormProblem> reading = read_cuda_norm(kernel);
  if (!reading.refusal.empty())
    throw UnsupportedError("the row template cannot take the kernel: {}", reading.refusal);
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  return make_cuda_norm(reading.problem, {number("threads"), number("rows"), number("streams"),
                                          number("stages"), number("chain")});
}

}  // namespace sylvite
