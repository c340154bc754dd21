#include "base/error.h"
#include "schedules/cuda_forms.h"
#include "schedules/cuda_transpose.h"
#include "schedules/spaces.h"

// The transpose template as a space: its one parameter numbers the choices, as that of space_cuda_matmul.cpp
// does.

namespace sylvite {
namespace {

std::vector<CudaTransposeChoice> choices_for(const Kernel& kernel) {
  return cuda_transpose_choices(read_cuda_transpose(kernel).problem);
}

std::string refuses(const Kernel& kernel, const Machine& machine) {
  if (std::string reason = refuse_cuda_template(machine); !reason.empty()) return reason;
  return read_cuda_transpose(kernel).refusal;
}

std::vector<Parameter> parameters(const Kernel& kernel, const Machine& /*machine*/) {
  return {choice_parameter(choices_for(kernel).size())};
}

Point heuristic(const Kernel& /*kernel*/, const Machine& /*machine*/) {
  return {{"choice", 0}};
}

Candidate at(const Kernel& kernel, const Machine& /*machine*/, const Point& point) {
  const CudaTransposeChoice choice = choices_for(kernel).at(choice_number(point));
  return {{cuda_transpose_form,
           {{"down", choice.down},
            {"across", choice.across},
            {"rows_first", choice.rows_first},
            {"streams", choice.streams}}},
          {}};
}

}  // namespace

const Space cuda_transpose_space = {"cuda_transpose", refuses, parameters, heuristic, at, nullptr};

CudaTemplate cuda_transpose_template(const Kernel& kernel, const Form& form) {
  const Reading<CudaTransposeProblem> reading = read_cuda_transpose(kernel);
  if (!reading.refusal.empty())
    throw UnsupportedError("the transpose template cannot take the kernel: {}", reading.refusal);
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  return make_cuda_transpose(
      reading.problem, {number("down"), number("across"), form.at("rows_first") != 0, number("streams")});
}

}  // namespace sylvite
