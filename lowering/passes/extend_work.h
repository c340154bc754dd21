#pragma once

#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which a concat of a value's few first or last places as they are, and of work on the others, as rotary
/// embeddings leave the token of a class, is work on the whole value, of which the few keep what they were.
[[nodiscard]] Graph extend_work(const Graph& graph);

}  // namespace sylvite
