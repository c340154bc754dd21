#pragma once
// Tensors by what they hold: weights that passes computed anew, with the same result, are found again.

#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>

#include "lowering/plan/plan.h"
#include "sylvite/tensor.h"

namespace sylvite {

/// Asks tensors for their bytes. Thread safety: one thread at a time.
class EqualWeights {
 public:
  void add(const Tensor& tensor);
  /// A tensor that was added of this type with these bytes, else `tensor`.
  [[nodiscard]] Tensor find_or(const Tensor& tensor) const;

 private:
  std::set<const void*> identities_;
  std::unordered_multimap<std::uint64_t, Tensor> by_sample_;
};

/// The plan with those weights that `others` have, too: equal ones become one, so that they are packed once.
[[nodiscard]] std::shared_ptr<const Plan> with_equal_weights(const std::shared_ptr<const Plan>& plan,
                                                             const std::set<const Plan*>& others);

}  // namespace sylvite
