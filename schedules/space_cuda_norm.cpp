#include "base/error.h"
#include "schedules/cuda_forms.h"
#include "schedules/cuda_norm.h"
#include "schedules/spaces.h"

// The row template as a space: its one parameter numbers the choices, as that of space_cuda_matmul.cpp does.

namespace sylvite {
namespace {

std::vector<CudaNormChoice> choices_for(const Kernel& kernel) {
  return cuda_norm_choices(read_cuda_norm(kernel).problem);
}

std::string refuses(const Kernel& kernel, const Machine& machine) {
  if (std::string reason = refuse_cuda_template(machine); !reason.empty()) return reason;
  return read_cuda_norm(kernel).refusal;
}

std::vector<Parameter> parameters(const Kernel& kernel, const Machine& /*machine*/) {
  return {choice_parameter(choices_for(kernel).size())};
}

Candidate at(const Kernel& kernel, const Machine& /*machine*/, const Point& point) {
  const CudaNormChoice choice = choices_for(kernel).at(choice_number(point));
  return {{cuda_norm_form, {{"threads", choice.threads}, {"rows", choice.rows}, {"streams", choice.streams}}},
          {}};
}

}  // namespace

const Space cuda_norm_space = {
    .name = "cuda_norm",
    .refuses = refuses,
    .parameters = parameters,
    .heuristic = [](const Kernel&, const Machine&) { return Point{{"choice", 0}}; },
    .at = at,
    .cost = nullptr,
};

CudaTemplate cuda_norm_template(const Kernel& kernel, const Form& form) {
  const Reading<CudaNormProblem> reading = read_cuda_norm(kernel);
  if (!reading.refusal.empty())
    throw UnsupportedError("the row template cannot take the kernel: {}", reading.refusal);
  return make_cuda_norm(reading.problem, {static_cast<int>(form.at("threads")),
                                          static_cast<int>(form.at("rows")), form.at("streams") != 0});
}

}  // namespace sylvite
