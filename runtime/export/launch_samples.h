#pragma once
// What a kernel launches on a device at further sizes of a program: host code of kernels that Halide compiled computes numbers of its
// own, which expressions must say at all sizes.

#include <cstddef>
#include <vector>

#include "runtime/export/fitted_numbers.h"
#include "runtime/program_code.h"

namespace sylvite {

class LaunchSamples {
 public:
  /// Of launch `index` at those of `sizes` that its kernel serves. Throws as FittedNumbers.
  LaunchSamples(FittedNumbers& numbers, std::size_t index, const ProgramCode& code,
                const std::vector<SymbolValues>& sizes);

  struct Sample {
    SymbolValues sizes;
    NotedLaunches launches;
  };
  [[nodiscard]] const std::vector<Sample>& all() const { return samples_; }

 private:
  std::vector<Sample> samples_;
};

}  // namespace sylvite
