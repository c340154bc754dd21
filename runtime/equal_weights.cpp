#include "runtime/equal_weights.h"

#include <algorithm>
#include <cstring>

#include "frontend/values/same_bytes.h"

namespace sylvite {
namespace {

/// A hash of the type and of some bytes that lie evenly spread: whole weights are compared only when it is equal.
std::uint64_t sample_of(const Tensor& tensor) {
  constexpr std::int64_t samples = 64;
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  mix(static_cast<std::uint64_t>(tensor.dtype()));
  for (const std::int64_t extent : tensor.dims()) mix(static_cast<std::uint64_t>(extent));
  const std::int64_t words = tensor.byte_size() / 8;
  const std::int64_t step = std::max<std::int64_t>(words / samples, 1);
  for (std::int64_t word = 0; word < words; word += step) {
    std::uint64_t value = 0;
    std::memcpy(&value, static_cast<const char*>(tensor.data()) + word * 8, 8);
    mix(value);
  }
  return hash;
}

}  // namespace

void EqualWeights::add(const Tensor& tensor) {
  if (tensor.byte_size() == 0 || !identities_.insert(tensor.identity()).second) return;
  by_sample_.emplace(sample_of(tensor), tensor);
}

Tensor EqualWeights::find_or(const Tensor& tensor) const {
  if (tensor.byte_size() == 0 || identities_.contains(tensor.identity())) return tensor;
  const auto [begin, end] = by_sample_.equal_range(sample_of(tensor));
  const auto found =
      std::find_if(begin, end, [&](const auto& each) { return same_bytes(each.second, tensor); });
  return found == end ? tensor : found->second;
}

std::shared_ptr<const Plan> with_equal_weights(const std::shared_ptr<const Plan>& plan,
                                               const std::set<const Plan*>& others) {
  if (others.empty()) return plan;
  EqualWeights known;
  for (const Plan* each : others)
    for (const Tensor& weight : each->weights) known.add(weight);
  auto shared = std::make_shared<Plan>(*plan);
  for (Tensor& weight : shared->weights) weight = known.find_or(weight);
  return shared;
}

}  // namespace sylvite
