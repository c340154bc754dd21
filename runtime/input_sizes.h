#pragma once
// The sizes of a run, read off its inputs.

#include <vector>

#include "frontend/onnx/model_sizes.h"
#include "sylvite/device_tensor.h"
#include "sylvite/host_value.h"
#include "sylvite/tensor.h"

namespace sylvite {

/// Thread safety: one thread at a time.
class InputSizes {
 public:
  /// `model` must live as long.
  explicit InputSizes(const ModelSizes& model) : model_(model), reader_(model) {}

  /// Valid until the next call. Throw InputError naming input, dimension, value and range.
  [[nodiscard]] const Sizes& of(const std::vector<Tensor>& inputs);
  [[nodiscard]] const Sizes& of(const std::vector<HostValue>& inputs);
  [[nodiscard]] const Sizes& of(const std::vector<DeviceTensor>& inputs);

 private:
  const ModelSizes& model_;
  SizeReader reader_;
  Sizes read_;
};

}  // namespace sylvite
