#pragma once
// Kernels and plans that one combination of a model's sizes has in common with others.

#include <functional>

#include "runtime/session.h"

namespace sylvite {

/// The model at these sizes with kernels for them alone. May throw Error.
using ImportAt = std::function<Imported(const Sizes&)>;

/// Gives `imported`, which has kernels for its sizes alone, those for many where there are such; bind_known_sizes knows more from then
/// on. Other sizes are imported where these tell more. REQUIRES a model with a menu and plans.
void take_open_kernels(const OpenModel& model, Imported& imported, const ImportAt& import);
/// Imports the model at these sizes, where plans at others do not tell of it: bind_known_sizes knows more from then on. May throw
/// Error. False where no plan of the model tells of others. REQUIRES a model with plans.
bool learn_plan(const OpenModel& model, const Sizes& sizes);

}  // namespace sylvite
