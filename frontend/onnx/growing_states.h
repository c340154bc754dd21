#pragma once
// Models whose states grow: caches that each run extends by a concat, so that past and present have other sizes.

#include <cstddef>
#include <optional>

#include "frontend/onnx/imported_model.h"

namespace sylvite {

/// Takes the size by which states grow, and those that follow from it, out of the model's sizes: no run has a program of its
/// own for them. Nothing where no state grows. REQUIRES the states of the model. Throws UsageError where states grow by
/// several sizes, or by one of which nobody says how large it may become.
void find_growing_states(ParsedModel& model);

/// Decides how the model is imported: with states of their capacity (capacity_form), or, where its operations do not allow it, at
/// one length each (length_form), with a warning. Then the length is a size of the model as others, which no input has.
/// REQUIRES growing states. Throws UnsupportedError that says which operation stands in the way of the first form where there
/// is none.
void choose_growing_form(ParsedModel& model);

/// The model at these sizes with states of their capacity. REQUIRES growing states. Throws UnsupportedError that says which
/// operation stands in the way.
[[nodiscard]] ImportedModel import_with_capacity(const ParsedModel& model, const Sizes& sizes);

/// The number of the length among the model's sizes, where it is one.
[[nodiscard]] std::optional<std::size_t> length_symbol(const ParsedModel& model);

/// The model at these sizes, in the form that was chosen. Throws as import_with_capacity, and InputError where states have no
/// room for what such a run adds.
[[nodiscard]] ImportedModel import_growing(const ParsedModel& model, const Sizes& sizes);

}  // namespace sylvite
