#pragma once

#include "lowering/plan/plan.h"
#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which attention whose keys and values are repeated for neighbouring heads reads them as they are, where the
/// device has a template for that (options.refuse_template, which must be given). REQUIRES flatten before, which undoes views that
/// undo each other, and after.
[[nodiscard]] Graph share_keys(const Graph& graph, const LoweringOptions& options);

}  // namespace sylvite
