#include "lowering/plan/storage_order.h"

#include <algorithm>

#include "lowering/plan/run_extents.h"

namespace sylvite {
namespace {

/// The second dim outside of the first.
template <typename Extents>
void turn_outermost(Extents& strides, const Extents& stored) {
  strides[0] = strides[1];
  strides[1] = strides[0] * stored[0];
}

}  // namespace

bool has_lined_images(const TensorType& type) {
  return type.layout.channel_block > 0 && type.rank() > 2 &&
         std::any_of(type.shape.begin() + 2, type.shape.end(), [](const Extent& each) { return each != 1; });
}

bool has_outer_blocks(const TensorType& type) {
  return has_lined_images(type) && type.shape[1].known() > type.layout.channel_block;
}

bool has_outer_blocks(const Kernel& kernel, ValueId argument) {
  return has_outer_blocks(widest_body(kernel).type(argument));
}

Shape storage_strides(const Shape& stored, bool has_outer_blocks) {
  Shape strides;
  strides.resize(stored.size(), Extent(1));
  for (std::size_t i = stored.size(); i-- > 1;) strides[i - 1] = strides[i] * stored[i];
  if (has_outer_blocks) turn_outermost(strides, stored);
  return strides;
}

Dims storage_strides(const Dims& stored, bool has_outer_blocks) {
  Dims strides = dense_strides(stored);
  if (has_outer_blocks) turn_outermost(strides, stored);
  return strides;
}

}  // namespace sylvite
