#pragma once
// Models whose states grow: caches that each run extends by a concat, so that past and present have other sizes.

#include "frontend/onnx/imported_model.h"

namespace sylvite {

/// Takes the size by which states grow, and those that follow from it, out of the model's sizes: no run has a program of its
/// own for them. Nothing where no state grows. REQUIRES the states of the model. Throws UsageError where states grow by
/// several sizes, or by one of which nobody says how large it may become.
void find_growing_states(ParsedModel& model);

/// The model at these sizes, with states of their capacity (capacity_form). REQUIRES growing states.
/// Throws UnsupportedError that says which operation stands in the way.
[[nodiscard]] ImportedModel import_growing(const ParsedModel& model, const Sizes& sizes);

}  // namespace sylvite
