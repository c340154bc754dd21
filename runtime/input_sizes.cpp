#include "runtime/input_sizes.h"

#include "base/error.h"

namespace sylvite {

const Sizes& InputSizes::of(const std::vector<Tensor>& inputs) {
  const auto type_of = [&](std::size_t i) { return GivenType{inputs[i].dtype(), inputs[i].dims()}; };
  reader_.read(inputs.size(), type_of, read_);
  return read_;
}

const Sizes& InputSizes::of(const std::vector<HostValue>& inputs) {
  const auto type_of = [&](std::size_t i) {
    if (model_.inputs[i].is_texts && inputs[i].is_strings())
      return GivenType{DType::i64, inputs[i].strings().dims};
    if (!inputs[i].is_tensor()) {
      throw InputError("input {} '{}': got {}, expected a tensor of numbers", i, model_.inputs[i].name,
                       inputs[i].describe());
    }
    return GivenType{inputs[i].tensor().dtype(), inputs[i].tensor().dims()};
  };
  reader_.read(inputs.size(), type_of, read_);
  return read_;
}

const Sizes& InputSizes::of(const std::vector<DeviceTensor>& inputs) {
  std::vector<Dims> dims;
  dims.reserve(inputs.size());
  for (const DeviceTensor& input : inputs) dims.push_back(input.type.dims());
  const auto type_of = [&](std::size_t i) { return GivenType{inputs[i].type.dtype, dims[i]}; };
  reader_.read(inputs.size(), type_of, read_);
  return read_;
}

}  // namespace sylvite
