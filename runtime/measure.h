#pragma once
// Checking and timing candidates of a kernel, inside a measuring child.

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "autotune/worker_protocol.h"
#include "lowering/plan/kernel.h"
#include "runtime/cold_weights.h"

namespace sylvite {

/// Inputs and the reference's outputs of the kernels seen last. Thread safety: none.
class Measurer {
 public:
  /// Runs the reference once per kernel, then each candidate once, comparing outputs; then times those that
  /// agree, interleaved. `note` is called as MeasureNote says. Throws nothing for what candidates report; may
  /// crash or hang.
  [[nodiscard]] MeasureReply measure(const MeasureRequest& request,
                                     const std::function<void(std::size_t)>& note);

 private:
  struct Oracle {
    std::string kernel_text;
    Kernel kernel;
    std::vector<Tensor> inputs;
    std::vector<Tensor> outputs;
    std::unique_ptr<ColdWeights> weights;  ///< of the kernel that is being measured
  };
  Oracle& oracle_for(const MeasureRequest& request);
  void set_weights(Oracle& oracle, const std::string& target);

  std::list<Oracle> oracles_;  ///< most recently used first
};

}  // namespace sylvite
