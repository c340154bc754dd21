#pragma once
// A template that was compiled and loaded: what remains is to bind addresses.

#include <span>
#include <string>

#include "runtime/cuda_device.h"
#include "schedules/cuda_template.h"

namespace sylvite::cuda {

class TemplateKernel {
 public:
  /// `code` is the template's machine code. REQUIRES a current context.
  TemplateKernel(const CudaTemplate& text, const std::string& code);

  /// `arguments`: addresses of the kernel's inputs, then of its output; tensors that maps name are 16-byte
  /// aligned. Throws CudaError when the driver refuses a map.
  [[nodiscard]] Launch bind(std::span<const DevicePointer> arguments) const;

 private:
  CudaTemplate text_;
  Module module_;
  FunctionHandle function_ = nullptr;
};

}  // namespace sylvite::cuda
