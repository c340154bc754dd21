#pragma once
// Packed weights on the device.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "runtime/bindings.h"
#include "runtime/cuda/device.h"

namespace sylvite {

/// Each tensor of the host lies on the device once, also where several programs have it.
class DeviceWeights {
 public:
  using Relatives = std::vector<std::shared_ptr<const DeviceWeights>>;

  /// Those of a program; of a relative that has all of them where there is one. REQUIRES and throws as the constructor.
  [[nodiscard]] static std::shared_ptr<const DeviceWeights> of(const Bindings& bindings,
                                                               const Relatives& relatives);
  /// Uploads what none of `relatives` has. REQUIRES a current context, and weights that are packed; those of the relatives
  /// must live while this is made. Throws CudaError when memory runs out.
  DeviceWeights(const Bindings& bindings, const Relatives& relatives);

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

  std::weak_ptr<const PackedWeights> all_;  ///< none where some are others at these sizes
  std::map<Source, Place> places_;
  std::vector<cuda::DevicePointer> addresses_;
};

}  // namespace sylvite
