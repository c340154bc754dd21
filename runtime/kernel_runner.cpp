#include "runtime/kernel_runner.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "lowering/algorithm.h"
#include "lowering/halide_types.h"
#include "lowering/packing.h"
#include "schedules/compile.h"

namespace sylvite {

namespace {

/// Weights cycle through about this many bytes: more than a core's L2, so that they come from further away.
constexpr std::int64_t weight_cycle_bytes = std::int64_t{32} << 20;
constexpr std::int64_t most_weight_copies = 64;

/// Elements that a kernel forgets to write must not pass for zeros.
void poison(Tensor& tensor) {
  std::memset(tensor.mutable_data(), 0xa5, static_cast<std::size_t>(tensor.byte_size()));
}

Tensor copy_of(const Tensor& tensor) {
  Tensor copy(tensor.dtype(), tensor.dims());
  std::memcpy(copy.mutable_data(), tensor.data(), static_cast<std::size_t>(tensor.byte_size()));
  return copy;
}

}  // namespace

KernelRunner::KernelRunner(const Kernel& kernel, const Candidate& candidate, const std::string& object,
                           const std::string& target, const std::vector<Tensor>& inputs, int threads)
    : context_(threads) {
  entry_ = loader_.load(object, symbol_name(kernel, candidate, target));
  std::vector<Packing> packings = input_packings(kernel, candidate.form);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (kernel.input_is_weight.at(i)) {
      const TensorType& type = kernel.body.type(kernel.body.inputs[i]);
      const Packing packing = packings.at(i).is_identity() ? layout_packing(type) : packings[i];
      add_weight(packing.is_identity() ? inputs[i] : pack(inputs[i], packing));
    } else {
      inputs_.push_back(inputs[i]);
      add_buffer(inputs[i]);
    }
  }
  for (ValueId output : kernel.body.outputs) {
    const TensorType& type = kernel.body.type(output);
    outputs_.emplace_back(type.dtype, type.storage_dims());
    poison(outputs_.back());
    add_buffer(outputs_.back());
  }
  arguments_.push_back(static_cast<void*>(&user_context_));
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    buffers_[i].dim = dims_[i].data();
    arguments_.push_back(&buffers_[i]);
  }
}

void KernelRunner::add_weight(const Tensor& tensor) {
  std::int64_t bytes = std::max<std::int64_t>(tensor.byte_size(), 1);
  std::int64_t copies = std::clamp<std::int64_t>(weight_cycle_bytes / bytes, 1, most_weight_copies);
  Weight weight{buffers_.size(), {tensor}};
  while (static_cast<std::int64_t>(weight.copies.size()) < copies) {
    weight.copies.push_back(copy_of(tensor));
  }
  weights_.push_back(std::move(weight));
  add_buffer(tensor);
}

void KernelRunner::add_buffer(const Tensor& tensor) {
  std::vector<halide_dimension_t> dims;
  Dims strides = dense_strides(tensor.dims());
  for (std::size_t d = tensor.dims().size(); d-- > 0;) {  // Halide counts from the innermost
    dims.emplace_back(0, static_cast<std::int32_t>(tensor.dims()[d]), static_cast<std::int32_t>(strides[d]));
  }
  halide_buffer_t buffer{};
  buffer.host = static_cast<std::uint8_t*>(const_cast<void*>(tensor.data()));
  buffer.type = halide_type_of(tensor.dtype());
  buffer.dimensions = static_cast<std::int32_t>(dims.size());
  dims_.push_back(std::move(dims));
  buffers_.push_back(buffer);
}

void KernelRunner::use_next_weights() {
  ++calls_;
  for (Weight& weight : weights_) {
    const Tensor& copy = weight.copies[calls_ % weight.copies.size()];
    buffers_[weight.buffer].host = static_cast<std::uint8_t*>(const_cast<void*>(copy.data()));
  }
}

void KernelRunner::call() {
  use_next_weights();
  int result = entry_(arguments_.data());
  if (result != 0) {
    throw VerifyError("the kernel reported error {}: {}", result, context_.take_error());
  }
}

}  // namespace sylvite
