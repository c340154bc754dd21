#pragma once
// Packed weights on the device.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "runtime/cuda/device.h"
#include "runtime/packed_weights.h"

namespace sylvite {

/// Each tensor of the host lies on the device once, also where several programs have it.
class DeviceWeights {
 public:
  /// Uploads what none of `relatives` has. REQUIRES a current context, and weights that are packed; those of the relatives
  /// must live while this is made. Throws CudaError when memory runs out.
  DeviceWeights(const PackedWeights& weights,
                const std::vector<std::shared_ptr<const DeviceWeights>>& relatives);

  [[nodiscard]] const std::vector<cuda::DevicePointer>& addresses() const { return addresses_; }  ///< by slot
  /// Bytes of memory that is not in `counted`, where the rest is added.
  [[nodiscard]] std::int64_t bytes(std::set<const void*>& counted) const;

 private:
  using Source = std::pair<const void*, std::int64_t>;  ///< where the tensor lies on the host, and its bytes
  struct Place {
    std::shared_ptr<const cuda::DeviceMemory> block;
    std::size_t offset = 0;
  };
  [[nodiscard]] static Source source_of(const Tensor& weight);
  [[nodiscard]] const Place* find(const Source& source) const;
  void upload(const std::vector<const Tensor*>& fresh);

  std::map<Source, Place> places_;
  std::vector<cuda::DevicePointer> addresses_;
};

}  // namespace sylvite
