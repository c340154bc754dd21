#include "runtime/cuda/device_room.h"

#include <algorithm>

namespace sylvite {
namespace {

/// Half as large again as what there was, so that it grows few times however sizes grow.
template <typename Memory>
void grow(Memory& memory, std::size_t wanted) {
  if (memory.size() >= wanted && memory.size() > 0) return;
  const std::size_t before = memory.size();
  memory = Memory();  // first, as both may not fit
  memory = Memory(std::max({wanted, before / 2 * 3, std::size_t{1}}));
}

void grow_all(std::vector<cuda::DeviceMemory>& all, const std::vector<std::size_t>& wanted) {
  if (all.size() < wanted.size()) all.resize(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) grow(all[i], wanted[i]);
}

std::vector<cuda::DevicePointer> addresses(const std::vector<cuda::DeviceMemory>& all, std::size_t count) {
  std::vector<cuda::DevicePointer> result;
  result.reserve(count);
  for (std::size_t i = 0; i < count; ++i) result.push_back(all[i].address());
  return result;
}

}  // namespace

DeviceArguments DeviceRoom::take(const std::vector<std::size_t>& inputs,
                                 const std::vector<std::size_t>& outputs, std::size_t work) {
  grow_all(inputs_, inputs);
  grow_all(outputs_, outputs);
  grow(work_, work);
  if (staging_.size() < inputs.size()) staging_.resize(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) grow(staging_[i], inputs[i]);
  return {addresses(inputs_, inputs.size()), addresses(outputs_, outputs.size()), work_.address()};
}

std::size_t DeviceRoom::bytes() const {
  std::size_t total = work_.size();
  for (const cuda::DeviceMemory& memory : inputs_) total += memory.size();
  for (const cuda::DeviceMemory& memory : outputs_) total += memory.size();
  return total;
}

}  // namespace sylvite
