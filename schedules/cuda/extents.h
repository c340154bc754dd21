#pragma once
// Extents that a template's text does not fix: those that runs of an open kernel give. A text has `struct Extents`, whose members
// are constants where the text knows them, and Extents extents_of(const Arguments&). Internal to schedules/.

#include <cstdint>
#include <string>
#include <vector>

#include "lowering/plan/kernel.h"

namespace sylvite {

/// The values are below 2^31.
struct CudaExtent {
  std::string name;
  std::int64_t value = 0;
  bool is_open = false;
};

/// Members of Arguments, behind its pointers: LaunchSpec::numbers.
[[nodiscard]] std::string extent_members(const std::vector<CudaExtent>& extents);
/// struct Extents and extents_of, behind struct Arguments.
[[nodiscard]] std::string extents_text(const std::vector<CudaExtent>& extents);
/// What the members are.
[[nodiscard]] std::vector<std::int64_t> extent_numbers(const std::vector<CudaExtent>& extents);

/// Whether runs of an open kernel give lines or columns of the images that its anchor makes or reads, or their number alone.
[[nodiscard]] bool has_open_images(const Kernel& kernel);

/// `name` with the extents that tell kernels of fixed sizes apart; an open one has `name` alone.
[[nodiscard]] std::string entry_name(const std::string& name, bool is_open,
                                     const std::vector<std::int64_t>& extents);

}  // namespace sylvite
