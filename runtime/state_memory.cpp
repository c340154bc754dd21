#include "runtime/state_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sylvite {
namespace {

constexpr cuda::StreamHandle default_stream = nullptr;

}  // namespace

StateMemory::StateMemory(std::size_t bytes, bool on_device)
    : size_(bytes), is_on_device_(on_device), host_(on_device ? 0 : bytes) {}

cuda::DevicePointer StateMemory::device_address() {
  if (device_.size() == 0) {
    const cuda::CurrentDevice device;
    cuda::DeviceMemory memory(std::max<std::size_t>(size_, 1));
    cuda::driver().fill_bytes(memory.address(), 0, memory.size(), default_stream);
    cuda::driver().stream_synchronize(default_stream);
    device_ = std::move(memory);
  }
  return device_.address();
}

void StateMemory::read(std::size_t offset, void* to, std::size_t bytes) const {
  if (bytes == 0) return;
  if (!is_on_device_) {
    std::memcpy(to, host_.data() + offset, bytes);
  } else if (device_.size() == 0) {
    std::memset(to, 0, bytes);
  } else {
    const cuda::CurrentDevice device;
    cuda::driver().context_synchronize();
    cuda::driver().copy_to_host(to, device_.address() + offset, bytes, default_stream);
    cuda::driver().stream_synchronize(default_stream);
  }
}

void StateMemory::write(std::size_t offset, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (!is_on_device_) {
    std::memcpy(host_.data() + offset, from, bytes);
    return;
  }
  const cuda::DevicePointer to = device_address() + offset;
  const cuda::CurrentDevice device;
  cuda::driver().context_synchronize();
  cuda::driver().copy_to_device(to, from, bytes, default_stream);
  cuda::driver().stream_synchronize(default_stream);
}

}  // namespace sylvite
