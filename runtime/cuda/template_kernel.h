#pragma once
// A template by itself, on memory that is there: for tests and benchmarks. Programs note their launches.

#include <span>
#include <string>
#include <utility>

#include "runtime/cuda/launch_maker.h"
#include "schedules/cuda/template.h"

namespace sylvite::cuda {

class TemplateKernel {
 public:
  /// `code` is the template's machine code.
  TemplateKernel(CudaTemplate text, std::string code) : text_(std::move(text)), code_(std::move(code)) {}

  /// `arguments`: addresses of the kernel's inputs, then of its output. As LaunchMaker::make.
  [[nodiscard]] Launch bind(std::span<const DevicePointer> arguments);

 private:
  CudaTemplate text_;
  std::string code_;
  LaunchMaker maker_;
};

}  // namespace sylvite::cuda
