#pragma once
// The weights of a plan as its kernels want them in memory.

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "lowering/plan/packing.h"
#include "sylvite/tensor.h"

namespace sylvite {

/// Launches that want the same weight in the same packing share one copy, as do packings that come out equal;
/// an identity packing shares the weight itself when it is aligned. Packed weights lie one behind the other
/// in the order in which they were wanted first, but for huge ones: a kernel that fetches its weights ahead
/// (schedules/directives/stream_ahead.h) ends with the first ones of the next kernel. Use: want() for every
/// weight argument, in the order of launches, pack_all() once, then at().
class PackedWeights {
 public:
  using Slot = std::size_t;

  [[nodiscard]] Slot want(std::int32_t weight, const Packing& packing);
  /// What `donor`, packed from the same weights, has already is copied, or shared where it lies alone.
  void pack_all(const std::vector<Tensor>& weights, int threads, const PackedWeights* donor = nullptr);
  [[nodiscard]] const Tensor& at(Slot slot) const { return packed_.at(slot); }
  [[nodiscard]] std::size_t size() const { return requests_.size(); }
  [[nodiscard]] std::int64_t byte_size() const;  ///< what is shared counts once

 private:
  struct Request {
    std::int32_t weight = 0;
    Packing packing;
  };
  [[nodiscard]] const Tensor* find(const Request& request) const;
  void make_places(const std::vector<Tensor>& weights);
  void fill(std::size_t request, const std::vector<Tensor>& weights, const PackedWeights* donor);

  std::vector<Request> requests_;
  std::vector<Tensor> packed_;
  std::map<std::pair<std::int32_t, Packing>, Slot> slots_;
};

/// The tensor itself when its bytes are 64-byte aligned, as kernels want, else an aligned copy.
[[nodiscard]] Tensor aligned(const Tensor& tensor);

}  // namespace sylvite
