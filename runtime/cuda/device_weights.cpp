#include "runtime/cuda/device_weights.h"

#include "base/rounding.h"

namespace sylvite {
namespace {

constexpr std::size_t weight_alignment = 256;

}  // namespace

DeviceWeights::Source DeviceWeights::source_of(const Tensor& weight) {
  return {weight.data(), weight.byte_size()};
}

const DeviceWeights::Place* DeviceWeights::find(const Source& source) const {
  const auto found = places_.find(source);
  return found == places_.end() ? nullptr : &found->second;
}

std::shared_ptr<const DeviceWeights> DeviceWeights::of(const Bindings& bindings, const Relatives& relatives) {
  if (bindings.own_weights.empty())
    for (const std::shared_ptr<const DeviceWeights>& relative : relatives)
      if (relative->all_.lock() == bindings.weights) return relative;
  return std::make_shared<const DeviceWeights>(bindings, relatives);
}

DeviceWeights::DeviceWeights(const Bindings& bindings, const Relatives& relatives) {
  if (bindings.own_weights.empty()) all_ = bindings.weights;
  const std::size_t count = bindings.weights->size();
  std::vector<const Tensor*> fresh;
  for (std::size_t slot = 0; slot < count; ++slot) {
    const Tensor& weight = weight_of(bindings, slot);
    const auto [place, is_new] = places_.try_emplace(source_of(weight));
    if (!is_new) continue;
    for (const std::shared_ptr<const DeviceWeights>& relative : relatives) {
      if (place->second.block != nullptr) break;
      if (const Place* known = relative->find(place->first)) place->second = *known;
    }
    if (place->second.block == nullptr) fresh.push_back(&weight);
  }
  upload(fresh);
  for (std::size_t slot = 0; slot < count; ++slot) {
    const Place& place = places_.at(source_of(weight_of(bindings, slot)));
    addresses_.push_back(place.block->address() + place.offset);
  }
}

/// All in one block.
void DeviceWeights::upload(const std::vector<const Tensor*>& fresh) {
  std::size_t total = 0;
  for (const Tensor* weight : fresh) {
    places_.at(source_of(*weight)).offset = total;
    total += round_up(static_cast<std::size_t>(weight->byte_size()), weight_alignment);
  }
  const auto block = std::make_shared<const cuda::DeviceMemory>(total);
  const cuda::Stream stream;
  for (const Tensor* weight : fresh) {
    Place& place = places_.at(source_of(*weight));
    place.block = block;
    if (weight->byte_size() == 0) continue;
    cuda::driver().copy_to_device(block->address() + place.offset, weight->data(),
                                  static_cast<std::size_t>(weight->byte_size()), stream.get());
  }
  stream.synchronize();
}

std::int64_t DeviceWeights::bytes(std::set<const void*>& counted) const {
  std::int64_t total = 0;
  for (const auto& [source, place] : places_)
    if (counted.insert(place.block.get()).second) total += static_cast<std::int64_t>(place.block->size());
  return total;
}

}  // namespace sylvite
