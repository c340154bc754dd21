#pragma once

#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which running sums of few elements are sums of those that count: every sum is made by itself, where a scan is
/// one thread for each of its rows. Long rows that are few are scanned in parts.
[[nodiscard]] Graph fold_scans(const Graph& graph);

}  // namespace sylvite
