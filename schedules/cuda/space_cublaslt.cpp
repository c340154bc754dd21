#include "base/error.h"
#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/forms.h"
#include "schedules/cuda/library_call.h"
#include "schedules/cuda/matmul_maps.h"
#include "schedules/cuda/spaces.h"

// Space cublaslt: matmuls with an epilogue that cuBLASLt has, where it may be used (knob schedules.cublaslt).
//   algorithm   which of those that its heuristics propose; one that it does not have fails when it is loaded

namespace sylvite {
namespace {

Binding bind_cublaslt(const Kernel& kernel, const Machine& machine) {
  if (!machine.gpu || machine.gpu_tools.cublaslt == 0) return {"schedules.cublaslt is off"};
  const Reading<CudaMatmulProblem> reading = read_cuda_matmul(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  if (std::string refusal = refuse_tensor_maps(reading.problem); !refusal.empty()) return {refusal};
  if (!reading.problem.simple_epilogue) return {"cuBLASLt has no such epilogue"};
  if (std::string refusal = refuse_tf32(reading.problem.element, machine); !refusal.empty()) return {refusal};
  return bind_library_choices(cublaslt_form, "algorithm");
}

}  // namespace

const Space cublaslt_space = {"cublaslt", bind_cublaslt};

CudaTemplate cublaslt_template(const Kernel& kernel, const Form& form) {
  const Reading<CudaMatmulProblem> reading = read_cuda_matmul(kernel);
  if (!reading.refusal.empty() || !reading.problem.simple_epilogue)
    throw UnsupportedError("cuBLASLt cannot take the kernel: {}",
                           reading.refusal.empty() ? "it has no such epilogue" : reading.refusal);
  CudaTemplate result;
  result.launch.library =
      LibraryMatmul{library_problem(reading.problem), static_cast<std::size_t>(form.at("algorithm"))};
  return result;
}

}  // namespace sylvite
