#pragma once
// Runs a CUDA template on the card against the reference interpreter.

#include <cmath>
#include <limits>
#include <random>

#include "frontend/graph/interpreter.h"
#include "lowering/plan/kernel.h"
#include "runtime/cuda/template_kernel.h"
#include "schedules/cuda/nvrtc.h"

namespace sylvite {

/// Normal numbers; about two in three truth values are true.
inline std::vector<Tensor> normal_inputs(const Kernel& kernel, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Tensor> inputs;
  for (const ValueId id : kernel.body.inputs) {
    Tensor tensor(kernel.body.type(id).dtype, kernel.body.type(id).dims());
    const bool is_truth = tensor.dtype() == DType::boolean;
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double x = normal(random);
      is_truth ? tensor.set_int64(i, x > -0.4) : tensor.set_double(i, x);
    }
    inputs.push_back(tensor);
  }
  return inputs;
}

/// Inputs and an output of NaNs on the device.
class OnDevice {
 public:
  OnDevice(const Kernel& kernel, const std::vector<Tensor>& inputs)
      : out_(kernel.body.type(kernel.body.outputs[0]).dtype,
             kernel.body.type(kernel.body.outputs[0]).dims()) {
    for (const Tensor& tensor : inputs) {
      memory_.emplace_back(static_cast<std::size_t>(tensor.byte_size()));
      cuda::driver().copy_to_device(memory_.back().address(), tensor.data(), memory_.back().size(),
                                    stream.get());
    }
    memory_.emplace_back(static_cast<std::size_t>(out_.byte_size()));
    cuda::driver().fill_bytes(memory_.back().address(), 0xff, memory_.back().size(), stream.get());
    stream.synchronize();
  }
  [[nodiscard]] std::vector<cuda::DevicePointer> addresses() const {
    std::vector<cuda::DevicePointer> result;
    for (const cuda::DeviceMemory& memory : memory_) result.push_back(memory.address());
    return result;
  }
  [[nodiscard]] Tensor result() {
    cuda::driver().copy_to_host(out_.mutable_data(), memory_.back().address(), memory_.back().size(),
                                stream.get());
    stream.synchronize();
    return out_;
  }
  cuda::Stream stream;

 private:
  std::vector<cuda::DeviceMemory> memory_;
  Tensor out_;
};

/// Norm of the difference over the norm of the reference; infinite for NaN.
inline double error_of(const Tensor& result, const Tensor& reference) {
  double difference = 0, norm = 0;
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const double r = reference.as_double(i), d = result.as_double(i) - r;
    if (std::isnan(d)) return std::numeric_limits<double>::infinity();
    difference += d * d;
    norm += r * r;
  }
  return std::sqrt(difference / norm);
}

/// The result of the last of `times` launches in a row.
inline Tensor run_template(const CudaTemplate& text, const Kernel& kernel, const std::vector<Tensor>& inputs,
                           int times = 1) {
  cuda::TemplateKernel compiled(cuda::compile_cuda(text));
  OnDevice device(kernel, inputs);
  const cuda::Launch launch = compiled.bind(device.addresses());
  for (int i = 0; i < times; ++i) cuda::launch(launch, device.stream.get());
  return device.result();
}

}  // namespace sylvite
