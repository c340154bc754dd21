#include "base/error.h"
#include "schedules/cuda_columns.h"
#include "schedules/cuda_forms.h"
#include "schedules/spaces.h"

// The column template as a space: its one parameter numbers the choices, as that of space_cuda_matmul.cpp
// does.

namespace sylvite {
namespace {

std::vector<CudaColumnsChoice> choices_for(const Kernel& kernel) {
  return cuda_columns_choices(read_cuda_columns(kernel).problem);
}

std::string refuses(const Kernel& kernel, const Machine& machine) {
  if (std::string reason = refuse_cuda_template(machine); !reason.empty()) return reason;
  return read_cuda_columns(kernel).refusal;
}

std::vector<Parameter> parameters(const Kernel& kernel, const Machine& /*machine*/) {
  return {choice_parameter(choices_for(kernel).size())};
}

Point heuristic(const Kernel& /*kernel*/, const Machine& /*machine*/) {
  return {{"choice", 0}};
}

Candidate at(const Kernel& kernel, const Machine& /*machine*/, const Point& point) {
  const CudaColumnsChoice choice = choices_for(kernel).at(choice_number(point));
  return {{cuda_columns_form,
           {{"lanes", choice.lanes},
            {"deep", choice.deep},
            {"unroll", choice.unroll},
            {"cluster", choice.cluster},
            {"streams", choice.streams}}},
          {}};
}

}  // namespace

const Space cuda_columns_space = {"cuda_columns", refuses, parameters, heuristic, at, nullptr};

CudaTemplate cuda_columns_template(const Kernel& kernel, const Form& form) {
  const Reading<CudaColumnsProblem> reading = read_cuda_columns(kernel);
  if (!reading.refusal.empty())
    throw UnsupportedError("the column template cannot take the kernel: {}", reading.refusal);
  const auto number = [&](const char* name) { return static_cast<int>(form.at(name)); };
  return make_cuda_columns(reading.problem, {number("lanes"), number("deep"), number("unroll"),
                                             number("cluster"), form.at("streams") != 0});
}

}  // namespace sylvite
