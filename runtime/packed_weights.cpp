#include "runtime/packed_weights.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <set>

#include "base/rounding.h"
#include "runtime/memory.h"
#include "runtime/threads.h"

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
      return other->data() == tensor.data() ||  // of a donor, which shared them before
             std::memcmp(other->data(), tensor.data(), static_cast<std::size_t>(tensor.byte_size())) == 0;
    });
    if (found != alike.end())
      tensor = (*found)->reshaped(tensor.dims());
    else
      alike.push_back(&tensor);
  }
}

void copy_bytes(const Tensor& from, Tensor& to) {
  if (from.byte_size() > 0)
    std::memcpy(to.mutable_data(), from.data(), static_cast<std::size_t>(from.byte_size()));
}

/// A weight of more bytes has memory of its own: of its many slabs the first one hardly counts, and it may
/// turn out to be the same as another.
constexpr std::int64_t most_bytes_in_row = 16 << 20;
constexpr std::int64_t line_bytes = 64;

}  // namespace

Tensor aligned(const Tensor& tensor) {
  if (reinterpret_cast<std::uintptr_t>(tensor.data()) % 64 == 0 && tensor.data() != nullptr) return tensor;
  Tensor copy(tensor.dtype(), tensor.dims());
  copy_bytes(tensor, copy);
  return copy;
}

PackedWeights::Slot PackedWeights::want(std::int32_t weight, const Packing& packing) {
  const auto [found, is_new] = slots_.try_emplace({weight, packing}, requests_.size());
  if (is_new) requests_.push_back({weight, packing});
  return found->second;
}

PackedWeights::Source PackedWeights::source_of(const Request& request, const std::vector<Tensor>& weights) {
  const Tensor& weight = weights.at(static_cast<std::size_t>(request.weight));
  return {weight.identity(), weight.dtype(), weight.dims(), request.packing};
}

/// The packed weight; nullptr when it was not wanted here.
const Tensor* PackedWeights::find(const Source& source) const {
  const auto found = sources_.find(source);
  return found == sources_.end() ? nullptr : &packed_.at(found->second);
}

/// Gives every weight to be packed that lies in the row its place there.
void PackedWeights::make_places(const std::vector<Tensor>& weights) {
  std::vector<std::int64_t> offsets(requests_.size(), -1);
  std::int64_t end = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const Tensor& weight = weights.at(static_cast<std::size_t>(requests_[i].weight));
    const Packing& packing = requests_[i].packing;
    if (packing.is_identity() || packed_[i].data() != nullptr) continue;
    packed_[i] = Tensor(weight.dtype(), packing.packed_dims(weight.dims()), nullptr, nullptr);
    if (packed_[i].byte_size() > most_bytes_in_row) continue;
    offsets[i] = end;
    end += round_up(packed_[i].byte_size(), line_bytes);
  }
  const auto row = std::make_shared<Arena>(static_cast<std::size_t>(end));
  for (std::size_t i = 0; i < requests_.size(); ++i)
    if (offsets[i] >= 0)
      packed_[i] = Tensor(packed_[i].dtype(), packed_[i].dims(), row, row->data() + offsets[i]);
}

void PackedWeights::pack_all(const std::vector<Tensor>& weights, int threads, const WeightDonors& donors) {
  packed_.assign(requests_.size(), Tensor());
  std::vector<const Tensor*> done(requests_.size(), nullptr);
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const Source source = source_of(requests_[i], weights);
    for (const PackedWeights* donor : donors.packed)
      if (done[i] == nullptr) done[i] = donor->find(source);
    if (done[i] != nullptr && donors.in_place) packed_[i] = *done[i];
  }
  make_places(weights);
  const auto fill = [&](std::size_t i) {
    if (done[i] != nullptr && donors.in_place) return;
    const Tensor& weight = weights.at(static_cast<std::size_t>(requests_[i].weight));
    Tensor& packed = packed_[i];
    if (packed.data() == nullptr)
      packed = done[i] != nullptr ? *done[i] : aligned(pack(weight, requests_[i].packing));
    else if (done[i] != nullptr)
      copy_bytes(*done[i], packed);
    else
      pack_into(weight, requests_[i].packing, packed);
  };
  std::exception_ptr failure;
  // More than processors only get in each other's way.
  // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): the pragma reads it
  const int packers = usable_threads(std::min(threads, omp_get_num_procs()));
#pragma omp parallel for num_threads(packers) schedule(dynamic, 1)
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    try {
      fill(i);
    } catch (...) {
#pragma omp critical
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
  share_equal(packed_);
  for (std::size_t i = 0; i < requests_.size(); ++i) sources_[source_of(requests_[i], weights)] = i;
}

std::int64_t PackedWeights::byte_size() const {
  std::set<const void*> counted;
  return byte_size(counted);
}

std::int64_t PackedWeights::byte_size(std::set<const void*>& counted) const {
  std::int64_t total = 0;
  for (const Tensor& tensor : packed_)
    if (counted.insert(tensor.data()).second) total += tensor.byte_size();
  return total;
}

}  // namespace sylvite
