#include "runtime/cuda/device_kernel.h"

#include <algorithm>

#include "base/rounding.h"

namespace sylvite::cuda {
namespace {

/// A stream of the device, which is made current first.
Stream stream_of_device() {
  Device::get().make_current();
  return {};
}

}  // namespace

DeviceKernel::DeviceKernel() : stream_(stream_of_device()) {}

std::uint64_t DeviceKernel::upload(const void* data, std::size_t bytes) {
  const auto number = static_cast<std::uint32_t>(memory_.size());
  regions_.inputs.push_back(memory_.emplace_back(std::max<std::size_t>(bytes, 1)).address());
  if (bytes > 0) driver().copy_to_device(regions_.inputs.back(), data, bytes, stream_.get());
  stream_.synchronize();
  return encode_address({Region::input, number, 0});
}

void DeviceKernel::set_launches(const std::vector<NotedLaunch>& noted, std::size_t scratch_bytes) {
  scratch_ = DeviceMemory(scratch_bytes);
  regions_.scratch = scratch_.address();
  for (const NotedLaunch& each : noted) launches_.push_back(maker_.make(each, regions_));
}

void DeviceKernel::call() const {
  for (const Launch& each : launches_) launch(each, stream_.get());
}

double DeviceKernel::time(int calls) {
  constexpr int calls_in_graph = 16;  // enough that launches follow each other without gaps
  if (graph_.is_empty()) {
    graph_ = Graph(stream_, [this] {
      for (int i = 0; i < calls_in_graph; ++i) call();
    });
  }
  const int replays = ceil_div(calls, calls_in_graph);
  Event start;
  Event end;
  start.record(stream_.get());
  for (int i = 0; i < replays; ++i) graph_.launch(stream_.get());
  end.record(stream_.get());
  end.synchronize();
  return microseconds_between(start, end) / (replays * calls_in_graph);
}

void DeviceKernel::download(std::size_t tensor, void* data, std::size_t bytes) const {
  if (bytes > 0) driver().copy_to_host(data, memory_.at(tensor).address(), bytes, stream_.get());
  stream_.synchronize();
}

void DeviceKernel::fill(std::size_t tensor, int byte) const {
  const DeviceMemory& memory = memory_.at(tensor);
  driver().fill_bytes(memory.address(), static_cast<unsigned char>(byte), memory.size(), stream_.get());
}

}  // namespace sylvite::cuda
