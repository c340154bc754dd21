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

/// Inputs, and outputs of NaNs, on the device.
class OnDevice {
 public:
  OnDevice(const Kernel& kernel, const std::vector<Tensor>& inputs) {
    for (const Tensor& tensor : inputs) {
      memory_.emplace_back(static_cast<std::size_t>(tensor.byte_size()));
      cuda::driver().copy_to_device(memory_.back().address(), tensor.data(), memory_.back().size(),
                                    stream.get());
    }
    for (const ValueId id : kernel.body.outputs) {
      outs_.emplace_back(kernel.body.type(id).dtype, kernel.body.type(id).dims());
      memory_.emplace_back(static_cast<std::size_t>(outs_.back().byte_size()));
      cuda::driver().fill_bytes(memory_.back().address(), 0xff, memory_.back().size(), stream.get());
    }
    stream.synchronize();
  }
  [[nodiscard]] std::vector<cuda::DevicePointer> addresses() const {
    std::vector<cuda::DevicePointer> result;
    for (const cuda::DeviceMemory& memory : memory_) result.push_back(memory.address());
    return result;
  }
  [[nodiscard]] std::vector<Tensor> results() {
    const std::size_t first = memory_.size() - outs_.size();
    for (std::size_t i = 0; i < outs_.size(); ++i)
      cuda::driver().copy_to_host(outs_[i].mutable_data(), memory_[first + i].address(),
                                  memory_[first + i].size(), stream.get());
    stream.synchronize();
    return outs_;
  }
  [[nodiscard]] Tensor result() { return results().front(); }
  cuda::Stream stream;

 private:
  std::vector<cuda::DeviceMemory> memory_;
  std::vector<Tensor> outs_;
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

/// The results of the last of `times` launches in a row.
inline std::vector<Tensor> run_template_outputs(const CudaTemplate& text, const Kernel& kernel,
                                                const std::vector<Tensor>& inputs, int times = 1) {
  cuda::TemplateKernel compiled(cuda::compile_cuda(text));
  OnDevice device(kernel, inputs);
  const cuda::Launch launch = compiled.bind(device.addresses());
  for (int i = 0; i < times; ++i) cuda::launch(launch, device.stream.get());
  return device.results();
}
/// The first of them.
inline Tensor run_template(const CudaTemplate& text, const Kernel& kernel, const std::vector<Tensor>& inputs,
                           int times = 1) {
  return run_template_outputs(text, kernel, inputs, times).front();
}

}  // namespace sylvite
