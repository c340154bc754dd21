#pragma once
// The weights of a plan as its kernels want them in memory.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "lowering/plan/packing.h"
#include "sylvite/tensor.h"

namespace sylvite {

class PackedWeights;

/// Other programs, some of whose weights may be the same tensors in the same packing: those are not packed again.
struct WeightDonors {
  std::vector<const PackedWeights*> packed;
  /// They are used where they lie, which may not be in the order that is wanted here. Else only huge ones are, and
  /// others are copied into that order.
  bool in_place = false;
};

/// Launches that want the same weight in the same packing share one copy, as do packings that come out equal;
/// an identity packing shares the weight itself when it is aligned. Packed weights lie one behind the other
/// in the order in which they were wanted first, but for huge ones: a kernel that fetches its weights ahead
/// (schedules/directives/stream_ahead.h) ends with the first ones of the next kernel. Use: want() for every
/// weight argument, in the order of launches, pack_all() once, then at().
class PackedWeights {
 public:
  using Slot = std::size_t;

  [[nodiscard]] Slot want(std::int32_t weight, const Packing& packing);
  void pack_all(const std::vector<Tensor>& weights, int threads, const WeightDonors& donors = {});
  [[nodiscard]] const Tensor& at(Slot slot) const { return packed_.at(slot); }
  [[nodiscard]] std::size_t size() const { return requests_.size(); }
  [[nodiscard]] std::int32_t weight_of(Slot slot) const { return requests_.at(slot).weight; }
  [[nodiscard]] std::int64_t byte_size() const;  ///< what is shared counts once
  /// The same without what is in `counted`, where the rest is added.
  [[nodiscard]] std::int64_t byte_size(std::set<const void*>& counted) const;

 private:
  struct Request {
    std::int32_t weight = 0;
    Packing packing;
  };
  /// A tensor and its packing: what two programs may have in common.
  using Source = std::tuple<const void*, DType, Dims, Packing>;
  [[nodiscard]] static Source source_of(const Request& request, const std::vector<Tensor>& weights);
  [[nodiscard]] const Tensor* find(const Source& source) const;
  void make_places(const std::vector<Tensor>& weights);

  std::vector<Request> requests_;
  std::vector<Tensor> packed_;
  std::map<std::pair<std::int32_t, Packing>, Slot> slots_;
  std::map<Source, Slot> sources_;  ///< once they are packed
};

/// The tensor itself when its bytes are 64-byte aligned, as is fastest, else an aligned copy.
[[nodiscard]] Tensor aligned(const Tensor& tensor);

}  // namespace sylvite
