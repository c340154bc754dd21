#include "runtime/packed_weights.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <set>

namespace sylvite {
namespace {

/// Tensors of equal bytes become one: a table that rows are gathered from and that is multiplied by, too, is
/// often the same in both packings.
void share_equal(std::vector<Tensor>& tensors) {
  std::map<std::pair<DType, std::int64_t>, std::vector<const Tensor*>> known;
  for (Tensor& tensor : tensors) {
    if (tensor.byte_size() == 0) continue;
    std::vector<const Tensor*>& alike = known[{tensor.dtype(), tensor.byte_size()}];
    const auto found = std::find_if(alike.begin(), alike.end(), [&](const Tensor* other) {
      return std::memcmp(other->data(), tensor.data(), static_cast<std::size_t>(tensor.byte_size())) == 0;
    });
    if (found != alike.end()) {
      tensor = (*found)->reshaped(tensor.dims());
    } else {
      alike.push_back(&tensor);
    }
  }
}

}  // namespace

Tensor aligned(const Tensor& tensor) {
  if (reinterpret_cast<std::uintptr_t>(tensor.data()) % 64 == 0 && tensor.data() != nullptr) return tensor;
  Tensor copy(tensor.dtype(), tensor.dims());
  if (tensor.byte_size() > 0) {
    std::memcpy(copy.mutable_data(), tensor.data(), static_cast<std::size_t>(tensor.byte_size()));
  }
  return copy;
}

PackedWeights::Slot PackedWeights::want(std::int32_t weight, const Packing& packing) {
  const auto [found, is_new] = slots_.try_emplace({weight, packing}, requests_.size());
  if (is_new) requests_.push_back({weight, packing});
  return found->second;
}

/// The packed weight; nullptr when it was not wanted here.
const Tensor* PackedWeights::find(const Request& request) const {
  const auto found = slots_.find({request.weight, request.packing});
  return found == slots_.end() ? nullptr : &packed_.at(found->second);
}

void PackedWeights::pack_all(const std::vector<Tensor>& weights, int threads, const PackedWeights* donor) {
  packed_.resize(requests_.size());
  std::exception_ptr failure;
#pragma omp parallel for num_threads(std::max(threads, 1)) schedule(dynamic, 1)
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    try {
      const Tensor* shared = donor != nullptr ? donor->find(requests_[i]) : nullptr;
      packed_[i] = shared != nullptr ? *shared
                                     : aligned(pack(weights.at(static_cast<std::size_t>(requests_[i].weight)),
                                                    requests_[i].packing));
    } catch (...) {
#pragma omp critical
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
  share_equal(packed_);
}

std::int64_t PackedWeights::byte_size() const {
  std::int64_t total = 0;
  std::set<const void*> counted;
  for (const Tensor& tensor : packed_) {
    if (counted.insert(tensor.data()).second) total += tensor.byte_size();
  }
  return total;
}

}  // namespace sylvite
