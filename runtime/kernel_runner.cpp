#include "runtime/kernel_runner.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "lowering/algorithms/halide_types.h"
#include "lowering/plan/packing.h"
#include "runtime/cuda/launch_maker.h"
#include "runtime/cuda/recorder.h"
#include "schedules/compile.h"
#include "schedules/cuda/candidate.h"
#include "schedules/packings.h"

namespace sylvite {

namespace {

/// Elements that a kernel forgets to write must not pass for zeros.
void poison(Tensor& tensor) {
  std::memset(tensor.mutable_data(), 0xa5, static_cast<std::size_t>(tensor.byte_size()));
}

}  // namespace

/// Copies of all buffers on the device, and the launches of one call.
struct KernelRunner::OnDevice {
  cuda::Stream stream;
  std::vector<cuda::DeviceMemory> memory;  ///< per buffer
  cuda::DeviceMemory scratch;
  cuda::Regions regions;  ///< all buffers are inputs
  std::string image;      ///< of a template
  cuda::LaunchMaker maker;
  std::vector<cuda::Launch> launches;
  cuda::Graph graph;

  void upload(std::vector<halide_buffer_t>& buffers) {
    for (halide_buffer_t& buffer : buffers) {
      const std::size_t bytes = buffer.size_in_bytes();
      const cuda::DeviceMemory& copy = memory.emplace_back(std::max<std::size_t>(bytes, 1));
      if (bytes > 0) cuda::driver().copy_to_device(copy.address(), buffer.host, bytes, stream.get());
      buffer.device =
          cuda::encode_address({cuda::Region::input, static_cast<std::uint32_t>(regions.inputs.size()), 0});
      regions.inputs.push_back(copy.address());
    }
    stream.synchronize();
    for (halide_buffer_t& buffer : buffers) buffer.host = nullptr;
  }
  void make(const std::vector<cuda::NotedLaunch>& noted) {
    for (const cuda::NotedLaunch& each : noted) launches.push_back(maker.make(each, regions));
  }
  void issue() const {
    for (const cuda::Launch& launch : launches) cuda::launch(launch, stream.get());
  }
};

KernelRunner::KernelRunner(const Kernel& kernel, const Candidate& candidate, const std::string& object,
                           const std::string& target, const std::vector<Tensor>& inputs, ColdWeights& weights,
                           int threads)
    : context_(threads), cold_(weights) {
  const std::optional<CudaTemplate> text = cuda_template_of(kernel, candidate);
  if (!text) entry_ = loader_.load(object, symbol_name(kernel, candidate, target));
  std::vector<Packing> packings = packings_of(kernel, candidate.form);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (kernel.input_is_weight.at(i)) {
      const TensorType& type = kernel.body.type(kernel.body.inputs[i]);
      const Packing packing = packings.at(i).is_identity() ? layout_packing(type) : packings[i];
      const ColdWeights::Copies& copies = cold_.packed(i, packing);
      weights_.push_back({buffers_.size(), &copies});
      add_buffer(copies.dtype, copies.dims, copies.at(0));
    } else {
      inputs_.push_back(inputs[i]);
      add_buffer(inputs[i].dtype(), inputs[i].dims(), inputs[i].data());
    }
  }
  for (ValueId output : kernel.body.outputs) {
    const TensorType& type = kernel.body.type(output);
    outputs_.emplace_back(type.dtype, type.storage_dims());
    poison(outputs_.back());
    add_buffer(type.dtype, outputs_.back().dims(), outputs_.back().data());
  }
  arguments_.push_back(static_cast<void*>(&user_context_));
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    buffers_[i].dim = dims_[i].data();
    arguments_.push_back(&buffers_[i]);
  }
  if (is_gpu_target(target)) prepare_on_device(text, object);
}

KernelRunner::~KernelRunner() = default;

void KernelRunner::prepare_on_device(const std::optional<CudaTemplate>& text, const std::string& object) {
  cuda::Device::get().make_current();
  device_ = std::make_unique<OnDevice>();
  device_->upload(buffers_);
  if (text) {
    std::vector<std::uint64_t> words;
    for (const halide_buffer_t& buffer : buffers_) words.push_back(buffer.device);
    device_->image = object;
    return device_->make({cuda::note_template(*text, device_->image, words)});
  }
  cuda::LaunchRecorder recorder;
  const cuda::Recording recording = recorder.record(entry_, arguments_.data());
  if (recording.status != 0)
    throw VerifyError("the kernel reported error {}: {}", recording.status, context_.take_error());
  device_->scratch = cuda::DeviceMemory(recorder.scratch_bytes());
  device_->regions.scratch = device_->scratch.address();
  device_->make(recording.launches);
}

void KernelRunner::add_buffer(DType dtype, const Dims& dims, const void* data) {
  std::vector<halide_dimension_t> halide_dims;
  Dims strides = dense_strides(dims);
  for (std::size_t d = dims.size(); d-- > 0;)  // Halide counts from the innermost
    halide_dims.emplace_back(0, static_cast<std::int32_t>(dims[d]), static_cast<std::int32_t>(strides[d]));
  halide_buffer_t buffer{};
  buffer.host = static_cast<std::uint8_t*>(const_cast<void*>(data));
  buffer.type = halide_type_of(dtype);
  buffer.dimensions = static_cast<std::int32_t>(halide_dims.size());
  dims_.push_back(std::move(halide_dims));
  buffers_.push_back(buffer);
}

void KernelRunner::use_next_weights() {
  const std::size_t turn = cold_.next_turn();
  for (const Weight& weight : weights_)
    buffers_[weight.buffer].host = reinterpret_cast<std::uint8_t*>(weight.copies->at(turn));
}

double KernelRunner::time_on_device(int calls) {
  constexpr int calls_in_graph = 16;  // enough that launches follow each other without gaps
  if (!device_) return 0;
  const cuda::Stream& stream = device_->stream;
  if (device_->graph.is_empty()) {
    device_->graph = cuda::Graph(stream, [this] {
      for (int i = 0; i < calls_in_graph; ++i) device_->issue();
    });
  }
  const int replays = (calls + calls_in_graph - 1) / calls_in_graph;
  cuda::Event start;
  cuda::Event end;
  start.record(stream.get());
  for (int i = 0; i < replays; ++i) device_->graph.launch(stream.get());
  end.record(stream.get());
  end.synchronize();
  return cuda::microseconds_between(start, end) / (replays * calls_in_graph);
}

const std::vector<Tensor>& KernelRunner::outputs() {
  if (!device_) return outputs_;
  const std::size_t first = buffers_.size() - outputs_.size();
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(outputs_[i].byte_size());
    if (bytes == 0) continue;
    cuda::driver().copy_to_host(outputs_[i].mutable_data(), device_->memory.at(first + i).address(), bytes,
                                device_->stream.get());
  }
  device_->stream.synchronize();
  return outputs_;
}

void KernelRunner::call() {
  if (device_) return device_->issue();
  use_next_weights();
  int result = entry_(arguments_.data());
  if (result != 0) throw VerifyError("the kernel reported error {}: {}", result, context_.take_error());
}

}  // namespace sylvite
