#pragma once
// A GPU as its driver describes it.

#include <cstdint>
#include <string>

namespace sylvite {

/// What schedules and templates know of a GPU. A value; the runtime reads it once from the driver
/// (runtime/cuda/device.h), and tests make their own. Name and driver are part of the tuning key.
struct Card {
  std::string name;               ///< e.g. NVIDIA H200
  int capability = 0;             ///< 10 * major + minor: 90 for Hopper
  int driver = 0;                 ///< CUDA version of the driver, e.g. 13000
  int multiprocessors = 0;        ///< that run blocks side by side
  std::int64_t shared_bytes = 0;  ///< shared memory of one block, at most
  std::int64_t l2_bytes = 0;      ///< of the whole card
};

}  // namespace sylvite
