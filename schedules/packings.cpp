#include "schedules/packings.h"

#include "lowering/algorithms/algorithm.h"
#include "schedules/cuda/candidate.h"

namespace sylvite {

std::vector<Packing> packings_of(const Kernel& kernel, const Form& form) {
  auto packings = cuda_packings_of(kernel, form);
  return packings ? std::move(*packings) : input_packings(kernel, form);
}

}  // namespace sylvite
