#include "lowering/plan/storage_order.h"

#include <algorithm>

namespace sylvite {

bool has_lined_images(const TensorType& type) {
  return type.layout.channel_block > 0 && type.rank() > 2 &&
         std::any_of(type.shape.begin() + 2, type.shape.end(), [](const Extent& each) { return each != 1; });
}

bool has_outer_blocks(const TensorType& type) {
  return has_lined_images(type) && type.storage_shape()[1] != 1;
}

bool has_outer_blocks(const Kernel& kernel, ValueId argument) {
  return has_outer_blocks((kernel.open ? *kernel.open : kernel.body).type(argument));
}

Shape storage_strides(const Shape& stored, bool has_outer_blocks) {
  Shape strides;
  strides.resize(stored.size(), Extent(1));
  for (std::size_t i = stored.size(); i-- > 1;) strides[i - 1] = strides[i] * stored[i];
  if (has_outer_blocks) {
    strides[0] = strides[1];
    strides[1] = strides[0] * stored[0];
  }
  return strides;
}

Dims storage_strides(const Dims& stored, bool has_outer_blocks) {
  Dims strides = dense_strides(stored);
  if (has_outer_blocks) {
    strides[0] = strides[1];
    strides[1] = strides[0] * stored[0];
  }
  return strides;
}

}  // namespace sylvite
