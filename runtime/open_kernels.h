#pragma once
// Kernels and plans that one combination of a model's sizes has in common with others.

#include <functional>
#include <memory>

#include "runtime/session.h"

namespace sylvite {

/// load_graph of a model whose sizes are open, at these.
[[nodiscard]] Imported load_graph_at(const Sizes& sizes, Graph graph,
                                     const std::shared_ptr<const Setup>& setup);

/// The model at these sizes with kernels for them alone. May throw Error.
using ImportAt = std::function<Imported(const Sizes&)>;
/// That of a model with a file, which must live as long.
[[nodiscard]] ImportAt import_from(const OpenModel& model);

/// Gives `imported`, which has kernels for its sizes alone, those for many where there are such; bind_known_sizes knows more from then
/// on. Other sizes are imported where these tell more. REQUIRES a model with a menu and plans.
void take_open_kernels(const OpenModel& model, Imported& imported, const ImportAt& import);
/// The same of what bind_known_sizes told, where it has kernels for these sizes alone: plans at other sizes are told, too, or imported.
void take_told_kernels(const OpenModel& model, Imported& told, const ImportAt& import);
/// What bind_known_sizes tells, with open kernels taken; bind_sizes where it does not. REQUIRES a model with a file.
[[nodiscard]] Imported bind_told_sizes(const OpenModel& model, const Sizes& sizes);
/// The plan at these sizes with kernels for them alone: what plans at others tell, or that of an import, of which bind_known_sizes
/// knows from then on. May throw Error. REQUIRES a model with plans.
[[nodiscard]] std::shared_ptr<const Plan> learn_plan(const OpenModel& model, const Sizes& sizes,
                                                     const ImportAt& import);

}  // namespace sylvite
