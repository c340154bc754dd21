#pragma once
// A model that is evaluated at the sizes of each run.

#include <map>
#include <vector>

#include "runtime/evaluated.h"
#include "runtime/input_sizes.h"

namespace sylvite {

/// Thread safety: one thread at a time.
class OpenEvaluation {
 public:
  /// `imported` is of `model`, at its first sizes. REQUIRES that evaluation is not refused for it.
  OpenEvaluation(OpenModel model, const Imported& imported);

  [[nodiscard]] std::vector<HostValue> run(const std::vector<HostValue>& inputs);
  [[nodiscard]] std::vector<Tensor> run(const std::vector<Tensor>& inputs);
  [[nodiscard]] const ModelSizes& sizes() const { return model_.parsed.sizes; }

 private:
  const Evaluated& at(const Sizes& sizes);
  template <typename Inputs>
  const Evaluated& of(const Inputs& inputs);

  OpenModel model_;  ///< without its menu, which other threads may use
  InputSizes given_;
  std::map<Sizes, Evaluated> evaluated_;
};

}  // namespace sylvite
