#include "runtime/cold_weights.h"

#include <algorithm>
#include <cstring>

#include "base/rounding.h"

namespace sylvite {
namespace {

constexpr std::int64_t alignment = 64;
/// Of a small weight; more would only cost time to make.
constexpr std::int64_t most_copies = 1024;

}  // namespace

const ColdWeights::Copies& ColdWeights::packed(std::size_t number, const Packing& packing) {
  const auto [found, is_new] = copies_.try_emplace({number, packing});
  Copies& copies = found->second;
  if (!is_new) return copies;
  const Tensor& input = inputs_.at(number);
  const Tensor once = packing.is_identity() ? input : pack(input, packing);
  const std::int64_t stride = std::max(alignment, round_up(once.byte_size(), alignment));
  copies.dims = once.dims();
  copies.dtype = once.dtype();
  copies.stride = static_cast<std::size_t>(stride);
  copies.count = static_cast<std::size_t>(std::clamp<std::int64_t>(cycle_bytes_ / stride, 1, most_copies));
  copies.bytes = std::make_unique<Arena>(copies.count * copies.stride);
  for (std::size_t i = 0; i < copies.count; ++i)
    if (once.byte_size() > 0)
      std::memcpy(copies.at(i), once.data(), static_cast<std::size_t>(once.byte_size()));
  return copies;
}

}  // namespace sylvite
