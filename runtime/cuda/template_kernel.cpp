#include "runtime/cuda/template_kernel.h"

namespace sylvite::cuda {

Launch TemplateKernel::bind(std::span<const DevicePointer> arguments) {
  std::vector<std::uint64_t> words;
  words.reserve(arguments.size());
  for (std::uint32_t i = 0; i < arguments.size(); ++i) words.push_back(encode_address({Region::input, i, 0}));
  Regions regions;
  regions.inputs.assign(arguments.begin(), arguments.end());
  return maker_.make(note_launch(object_, object_->launch, words), regions);
}

}  // namespace sylvite::cuda
