#pragma once
// Kernels and plans that one combination of a model's sizes has in common with others.

#include <functional>
#include <memory>
#include <optional>

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
/// bind_known_sizes; where its plan has kernels for these sizes alone, those for many take their place that plans at other sizes show,
/// which are told, too, or imported. REQUIRES a model with a menu and plans.
[[nodiscard]] std::optional<Imported> learn_known_sizes(const OpenModel& model, const Sizes& sizes,
                                                        const ImportAt& import);
/// The same of a model with a file; bind_sizes where no other sizes tell. A model without a menu is imported.
[[nodiscard]] Imported bind_told_sizes(const OpenModel& model, const Sizes& sizes);
/// The plan at these sizes with kernels for them alone: what plans at others tell, or that of an import, of which bind_known_sizes
/// knows from then on. May throw Error. REQUIRES a model with plans.
[[nodiscard]] std::shared_ptr<const Plan> learn_plan(const OpenModel& model, const Sizes& sizes,
                                                     const ImportAt& import);

}  // namespace sylvite
