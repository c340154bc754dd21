#include "runtime/kernel_runner.h"

#include <cstring>

#include "base/error.h"
#include "lowering/plan/packing.h"
#include "lowering/plan/storage_order.h"
#include "schedules/compile.h"
#include "schedules/cuda/candidate.h"
#include "schedules/machine.h"
#include "schedules/packings.h"

namespace sylvite {

namespace {

/// All bytes of an output before a call: NaN, or an unlikely integer.
int poison_of(DType dtype) {
  return is_float(dtype) ? 0xff : 0xa5;
}

void poison(Tensor& tensor) {
  std::memset(tensor.mutable_data(), poison_of(tensor.dtype()), static_cast<std::size_t>(tensor.byte_size()));
}

}  // namespace

KernelRunner::KernelRunner(const Kernel& kernel, const Candidate& candidate, const std::string& object,
                           const std::string& target, const std::vector<Tensor>& inputs, ColdWeights& weights,
                           int threads)
    : context_(threads),
      call_(loaded_for(
                load_kernel(loader_, object, symbol_name(kernel, candidate, target), is_gpu_target(target)),
                kernel, candidate),
            context_, inputs.size() + kernel.body.outputs.size() + kernel.sizes.size()),
      cold_(weights) {
  const std::vector<Packing> packings = packings_of(kernel, candidate.form);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = kernel.body.type(kernel.body.inputs[i]);
    if (kernel.input_is_weight.at(i)) {
      const Packing packing = packings.at(i).is_identity() ? layout_packing(type) : packings[i];
      const ColdWeights::Copies& copies = cold_.packed(i, packing);
      weights_.push_back({&add_buffer(kernel, kernel.body.inputs[i], packings[i], copies.at(0)), &copies});
    } else {
      inputs_.push_back(inputs[i]);
      add_buffer(kernel, kernel.body.inputs[i], {}, inputs[i].data());
    }
  }
  for (const std::int64_t size : kernel.sizes) call_.add_size(size);
  for (ValueId output : kernel.body.outputs) {
    const TensorType& type = kernel.body.type(output);
    outputs_.emplace_back(type.dtype, type.storage_dims());
    poison(outputs_.back());
    add_buffer(kernel, output, {}, outputs_.back().data());
  }
  if (is_gpu_target(target)) prepare_on_device();
}

KernelRunner::~KernelRunner() = default;

halide_buffer_t& KernelRunner::add_buffer(const Kernel& kernel, ValueId id, const Packing& packing,
                                          const void* data) {
  const TensorType& type = kernel.body.type(id);
  halide_buffer_t& buffer =
      is_layout(packing, type)
          ? call_.add_argument(type.dtype, type.storage_dims(), has_outer_blocks(kernel, id))
          : call_.add_argument(type.dtype, packing.packed_dims(type.dims()));
  buffer.host = static_cast<std::uint8_t*>(const_cast<void*>(data));
  return buffer;
}

void KernelRunner::prepare_on_device() {
  device_ = std::make_unique<cuda::DeviceKernel>();
  for (halide_buffer_t& buffer : call_.buffers()) {
    buffer.device = device_->upload(buffer.host, buffer.size_in_bytes());
    buffer.host = nullptr;
  }
  cuda::LaunchRecorder recorder;
  const cuda::Recording recording = call_.note(recorder);
  if (recording.status != 0)
    throw VerifyError("the kernel reported error {}: {}", recording.status, context_.take_error());
  device_->set_launches(recording.launches, recorder.scratch_bytes());
}

void KernelRunner::use_next_weights() {
  const std::size_t turn = cold_.next_turn();
  for (const Weight& weight : weights_)
    weight.buffer->host = reinterpret_cast<std::uint8_t*>(weight.copies->at(turn));
}

double KernelRunner::time_on_device(int calls) {
  return device_ ? device_->time(calls) : 0;
}

const std::vector<Tensor>& KernelRunner::outputs() {
  if (!device_) return outputs_;
  const std::size_t first = call_.buffers().size() - outputs_.size();
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    device_->download(first + i, outputs_[i].mutable_data(),
                      static_cast<std::size_t>(outputs_[i].byte_size()));
  return outputs_;
}

void KernelRunner::poison_outputs() {
  const std::size_t first = call_.buffers().size() - outputs_.size();
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    device_ ? device_->fill(first + i, poison_of(outputs_[i].dtype())) : poison(outputs_[i]);
}

void KernelRunner::call() {
  if (device_) return device_->call();
  use_next_weights();
  const int status = call_.run();
  if (status != 0) throw VerifyError("the kernel reported error {}: {}", status, context_.take_error());
}

}  // namespace sylvite
