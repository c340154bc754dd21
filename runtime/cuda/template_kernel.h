#pragma once
// A template by itself, on memory that is there: for tests and benchmarks. Programs note their launches.

#include <memory>
#include <span>
#include <utility>

#include "runtime/cuda/launch_maker.h"

namespace sylvite::cuda {

class TemplateKernel {
 public:
  explicit TemplateKernel(CudaObject object) : object_(std::make_shared<CudaObject>(std::move(object))) {}

  /// `arguments`: addresses of the kernel's inputs, then of its output. As LaunchMaker::make.
  [[nodiscard]] Launch bind(std::span<const DevicePointer> arguments);

 private:
  std::shared_ptr<const CudaObject> object_;
  LaunchMaker maker_;
};

}  // namespace sylvite::cuda
