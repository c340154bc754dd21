#include "runtime/cuda/modules.h"

namespace sylvite::cuda {

const Module& Modules::of(const Image& image) {
  const std::scoped_lock lock(mutex_);
  const auto found = by_image_.find(*image);
  if (found != by_image_.end()) return found->second.module;
  return by_image_.try_emplace(*image, Loaded{image, Module(*image)}).first->second.module;
}

}  // namespace sylvite::cuda
