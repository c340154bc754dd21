#pragma once
// Sizes to be fast at that nobody gave: what names tell, where a model takes it.

#include "frontend/onnx/imported_model.h"

namespace sylvite {

/// Names tell usual sizes; a model may be for smaller ones, as one with 77 positions is, or for larger ones, as one whose first
/// window takes 256 samples, or for powers of two, or have states of sizes of their own. Where others do not help either, the
/// usual ones stay, and the error that comes of them.
void fit_guesses(ParsedModel& model);

}  // namespace sylvite
