#include "runtime/device_program.h"

#include <algorithm>
#include <cstring>

namespace sylvite {
namespace {

constexpr std::size_t weight_alignment = 256;

std::size_t rounded_up(std::size_t bytes) {
  return (bytes + weight_alignment - 1) / weight_alignment * weight_alignment;
}

std::size_t bytes_of(const Plan& plan, BufferId id) {
  return static_cast<std::size_t>(plan.buffers.at(static_cast<std::size_t>(id)).type.byte_size());
}

/// The current context of the calling thread is the device's from here on.
const Plan& with_device(const Plan& plan) {
  cuda::Device::get().make_current();
  return plan;
}

}  // namespace

DeviceProgram::DeviceProgram(const Plan& plan, const Bindings& bindings, bool use_graph)
    : plan_(with_device(plan)),
      bindings_(bindings),
      use_graph_(use_graph),
      arena_(static_cast<std::size_t>(plan.arena_bytes)) {
  for (const BufferId id : plan.inputs) {
    inputs_.emplace_back(std::max<std::size_t>(bytes_of(plan, id), 1));
    staging_.emplace_back(bytes_of(plan, id));
  }
  for (const BufferId id : plan.outputs) {
    outputs_.emplace_back(std::max<std::size_t>(bytes_of(plan, id), 1));
    results_.emplace_back(std::max<std::size_t>(bytes_of(plan, id), 1));
  }
  upload_weights();
}

void DeviceProgram::upload_weights() {
  std::size_t total = 0;
  for (std::size_t slot = 0; slot < bindings_.weights.size(); ++slot) {
    weight_offsets_.push_back(total);
    total += rounded_up(static_cast<std::size_t>(bindings_.weights.at(slot).byte_size()));
  }
  weights_ = cuda::DeviceMemory(total);
  for (std::size_t slot = 0; slot < weight_offsets_.size(); ++slot) {
    const Tensor& weight = bindings_.weights.at(slot);
    if (weight.byte_size() == 0) continue;
    cuda::driver().copy_to_device(weights_.address() + weight_offsets_[slot], weight.data(),
                                  static_cast<std::size_t>(weight.byte_size()), stream_.get());
  }
  stream_.synchronize();
}

cuda::DevicePointer DeviceProgram::address(const Place& place) const {
  const auto number = static_cast<std::size_t>(place.number);
  switch (place.kind) {
    case BufferKind::weight:
      return weights_.address() + weight_offsets_.at(number);
    case BufferKind::input:
      return inputs_.at(number).address();
    case BufferKind::output:
      return outputs_.at(number).address();
    case BufferKind::arena:
      return arena_.address() + number;
  }
  throw InternalError("corrupt kind of place {}", static_cast<int>(place.kind));
}

void DeviceProgram::upload(const std::vector<Tensor>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(inputs[i].byte_size());
    if (bytes == 0) continue;
    std::memcpy(staging_[i].data(), inputs[i].data(), bytes);
    cuda::driver().copy_to_device(inputs_[i].address(), staging_[i].data(), bytes, stream_.get());
  }
}

void DeviceProgram::issue() {
  const auto all_steps = [this] {
    for (const std::vector<DeviceStep>& steps : steps_) {
      for (const DeviceStep& step : steps) step(stream_.get());
    }
  };
  if (!use_graph_ || steps_.empty()) return all_steps();
  if (graph_.is_empty()) graph_ = cuda::Graph(stream_, all_steps);
  graph_.launch(stream_.get());
}

void DeviceProgram::issue_profiled(std::vector<LaunchTime>& profile) {
  std::vector<cuda::Event> events(steps_.size() + 1);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    events[i].record(stream_.get());
    for (const DeviceStep& step : steps_[i]) step(stream_.get());
  }
  events.back().record(stream_.get());
  stream_.synchronize();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Launch& launch = plan_.launches[i];
    profile.push_back({launch.name, plan_.kernels[static_cast<std::size_t>(launch.kernel)].id,
                       cuda::microseconds_between(events[0], events[i]),
                       cuda::microseconds_between(events[i], events[i + 1])});
  }
}

std::vector<Tensor> DeviceProgram::download(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < plan_.outputs.size(); ++i) {
    const TensorType& type = plan_.buffers.at(static_cast<std::size_t>(plan_.outputs[i])).type;
    const Place& place = bindings_.outputs[i];
    if (place.kind == BufferKind::input) {
      results.push_back(inputs.at(static_cast<std::size_t>(place.number)).reshaped(type.dims()));
    } else if (place.kind == BufferKind::weight) {
      results.push_back(plan_.weights.at(static_cast<std::size_t>(place.number)).reshaped(type.dims()));
    } else {
      const std::shared_ptr<void> block = results_[i].take();
      results.emplace_back(type.dtype, type.dims(), block, block.get());
      if (type.byte_size() == 0) continue;
      cuda::driver().copy_to_host(block.get(), address(place), static_cast<std::size_t>(type.byte_size()),
                                  stream_.get());
    }
  }
  stream_.synchronize();
  return results;
}

std::vector<Tensor> DeviceProgram::run(const std::vector<Tensor>& inputs, std::vector<LaunchTime>* profile) {
  cuda::Device::get().make_current();
  upload(inputs);
  profile != nullptr ? issue_profiled(*profile) : issue();
  return download(inputs);
}

double DeviceProgram::time_replays(int times) {
  cuda::Device::get().make_current();
  cuda::Event start;
  cuda::Event end;
  start.record(stream_.get());
  for (int i = 0; i < times; ++i) issue();
  end.record(stream_.get());
  end.synchronize();
  return cuda::microseconds_between(start, end) / times;
}

std::int64_t DeviceProgram::bytes() const {
  std::size_t total = arena_.size() + weights_.size() + recorder_.scratch_bytes();
  for (const cuda::DeviceMemory& memory : inputs_) total += memory.size();
  for (const cuda::DeviceMemory& memory : outputs_) total += memory.size();
  return static_cast<std::int64_t>(total);
}

}  // namespace sylvite
