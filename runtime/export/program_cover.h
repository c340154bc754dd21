#pragma once
// Programs for all sizes of a model: as few boxes of sizes as one program each serves.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/export/exported_program.h"
#include "runtime/family.h"
#include "runtime/session.h"

namespace sylvite {

/// One program for all sizes of a box.
struct CoveredBox {
  ExportedProgram program;
  std::unique_ptr<Built> built;  ///< at the greatest sizes of the box
};

/// Where the packed weights of a program lie in the weights file.
struct PlaceWeights {
  std::function<WeightPlaces(const Built&)> of;
  std::function<std::int64_t(const Tensor&)> add;  ///< one more; where it begins
};

/// What a library runs at each size of a model, the least sizes first, the greatest last. `choose` is asked for the kernels of
/// each program. Programs share weights and memory; those of a model without ranges are one. Throws UnsupportedError for a model
/// with host steps, UsageError where so many programs are needed that nobody wants them all: the message says why.
[[nodiscard]] std::vector<CoveredBox> cover_sizes(const OpenModel& model, const Chooser& choose,
                                                  const PlaceWeights& place);
/// The same of one that is built.
[[nodiscard]] ExportedProgram export_built(const Built& built, const WeightPlaces& weights);

/// What is linked into other programs runs kernels only. Throws UnsupportedError that names the steps.
[[noreturn]] void refuse_host_steps(const HostPart& host);

}  // namespace sylvite
